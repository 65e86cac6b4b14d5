/** Runs before the first paint, so that a chosen theme applies without a flash of the other one. */
const chosen = localStorage.getItem("owlclaw-theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset["theme"] = chosen;
