// Light or dark: as the system is set, until the button chooses.

function followTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement;
  let own = false;
  const show = (name) => (root.dataset.theme = name);
  const follow = () => own || show(system.matches ? "dark" : "light");
  document.querySelectorAll("[data-do=theme]").forEach((button) => button.addEventListener("click", () => {
    own = true;
    show(root.dataset.theme === "dark" ? "light" : "dark");
  }));
  system.addEventListener("change", follow);
  follow();
}
