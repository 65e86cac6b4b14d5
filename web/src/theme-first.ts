/** Runs before the first paint, so that whoever chose a theme never sees the other one flash. */
const chosen = localStorage.getItem("owlclaw-theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset["theme"] = chosen;
