// Light or dark: as the system has it, until the visitor says otherwise.

export function theme(button) {
  const system = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement;
  button.addEventListener("click", () => {
    const now = root.dataset.theme ?? (system.matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
  });
}
