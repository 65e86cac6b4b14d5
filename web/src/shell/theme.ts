import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const KEY = "owlclaw-theme";

export const theme = signal<Theme>(storedTheme());

function storedTheme(): Theme {
  const stored = localStorage.getItem(KEY);
  return stored === "light" || stored === "dark" ? stored : "system";
}

export function followTheme(): void {
  effect(() => {
    if (theme.value === "system") {
      localStorage.removeItem(KEY);
      delete document.documentElement.dataset["theme"];
    } else {
      localStorage.setItem(KEY, theme.value);
      document.documentElement.dataset["theme"] = theme.value;
    }
  });
}

export function toTheme(text: string): Theme {
  return text === "light" || text === "dark" ? text : "system";
}
