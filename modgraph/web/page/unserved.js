// Opened as a file, without a server, the page has no scripts to say what is wrong: browsers refuse modules there.

if (location.protocol === "file:") {
  const fault = document.querySelector(".fault");
  fault.textContent = "This page must come from a server, such as: python -m http.server -d FOLDER";
  fault.hidden = false;
  document.querySelector("main").hidden = true;
}
