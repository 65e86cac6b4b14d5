import { FrameWalk } from "./frame-walk.ts";
import { Refs } from "./refs.ts";

/** As Playwright wants it. It runs in a world of its own: the page's scripts cannot see or change it. */
interface SelectorEngine {
  query(root: Node, command: string): Element | undefined;
  queryAll(root: Node, command: string): Element[];
}

/**
 * Understands `ref:7`, the element with that ref, and `snapshot:7`: an element outside the page whose text is the
 * report of this frame as JSON, new refs starting at 7.
 */
export function createEngine(): SelectorEngine {
  const refs = new Refs();
  const answer = (command: string): Element[] => {
    const [verb = "", argument = ""] = command.split(":");
    const number = Number(argument);
    if (verb === "snapshot") return [report(refs, number)];
    const element = refs.find(number);
    return element === undefined ? [] : [element];
  };
  return { query: (_root, command) => answer(command)[0], queryAll: (_root, command) => answer(command) };
}

function report(refs: Refs, nextRef: number): Element {
  refs.startAt(nextRef);
  const carrier = document.createElement("pre");
  carrier.textContent = JSON.stringify(new FrameWalk(refs).report());
  return carrier;
}
