import { computed, signal } from "@preact/signals";
import { BASE, queryText } from "../server/api.ts";
import { staysHere } from "./stays-here.ts";

interface Place {
  /** The path below /dashboard, without slashes at its ends. */
  readonly path: string;
  readonly query: URLSearchParams;
}

/** Whether the user has navigated within the page since it was loaded. */
export let hasMoved = false;

export const place = signal<Place>(currentPlace());
export const segments = computed(() => (place.value.path === "" ? [] : place.value.path.split("/").map(decoded)));

function currentPlace(): Place {
  const path = location.pathname.slice(BASE.length).replaceAll(/^\/+|\/+$/g, "");
  return { path, query: new URLSearchParams(location.search) };
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    // Not a valid encoding, so the segment is used unchanged.
    return segment;
  }
}

export function href(
  parts: readonly (string | number)[],
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const text = queryText(query);
  const path = parts.map((part) => encodeURIComponent(part)).join("/");
  return `${BASE}${path === "" ? "" : `/${path}`}${text === "" ? "" : `?${text}`}`;
}

export function navigate(to: string, options: { readonly replace?: boolean } = {}): void {
  if (options.replace === true) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  hasMoved = true;
  place.value = currentPlace();
}

/** Changes part of the query, without a new history entry. */
export function changeQuery(changes: Readonly<Record<string, string | undefined>>): void {
  const query = Object.fromEntries(place.peek().query);
  navigate(`${location.pathname}?${queryText({ ...query, ...changes })}`.replace(/\?$/, ""), { replace: true });
}

export function startRouter(): void {
  addEventListener("popstate", () => {
    place.value = currentPlace();
  });
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
    if (!(link instanceof HTMLAnchorElement) || !staysHere(event, link)) return;
    event.preventDefault();
    navigate(link.pathname + link.search);
    scrollTo(0, 0);
  });
}
