import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { approvalCount } from "../live/now-store.ts";
import { hasMoved, place } from "../routing/router.ts";

interface PageProps {
  readonly title: string;
  /** Shown beside the heading. */
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** The frame of a view. Its heading is the page title, and gets the focus after navigation within the page. */
export function Page({ title, actions, children }: PageProps): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null);
  const waiting = approvalCount.value;
  useEffect(() => {
    document.title = `${waiting > 0 ? `(${waiting}) ` : ""}${title} · OwlClaw`;
  }, [title, waiting]);
  const { path } = place.value;
  // In the commit itself: an effect runs up to 100 ms after the view is visible, and would take the focus from the
  // link that a keyboard user has reached by then.
  useLayoutEffect(() => {
    const { activeElement } = document;
    const isFree = activeElement === document.body || activeElement?.tagName === "A";
    if (hasMoved && isFree) heading.current?.focus({ preventScroll: true });
  }, [path]);
  return (
    <>
      <header class="page-head">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        <div class="actions">{actions}</div>
      </header>
      {children}
    </>
  );
}
