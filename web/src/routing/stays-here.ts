import { BASE } from "../server/api.ts";

/** Whether the page handles a click on a link. The browser handles new tabs, downloads and other addresses. */
export function staysHere(event: MouseEvent, link: HTMLAnchorElement): boolean {
  return isPlainClick(event) && isPageAddress(link) && link.target === "" && !link.hasAttribute("download");
}

function isPlainClick({ button, metaKey, ctrlKey, shiftKey, altKey }: MouseEvent): boolean {
  return button === 0 && !(metaKey || ctrlKey || shiftKey || altKey);
}

function isPageAddress(link: HTMLAnchorElement): boolean {
  const { origin, pathname } = link;
  if (origin !== location.origin || link.getAttribute("href")?.startsWith("#") === true) return false;
  return pathname === BASE || (pathname.startsWith(`${BASE}/`) && !pathname.startsWith(`${BASE}/api/`));
}
