import { Failure } from "../../failure.ts";

const SNAPSHOT_AGAIN = "call browser_snapshot first and use one of the returned refs";
const REFUSED_FILES: ReadonlyArray<readonly [words: string, reason: string, hint: string]> = [
  ["Non-multiple file input", "the field takes one file only", "give it one path"],
  ["[webkitdirectory] input", "the field takes a folder, not files", "choose a field that takes files"],
];

interface ActionFacts {
  readonly selector: string;
  readonly timeoutMs: number;
}

/** Why an action on an element failed, with a hint. */
export function explainAction(error: unknown, { selector, timeoutMs }: ActionFacts): unknown {
  if (error instanceof Failure || !(error instanceof Error)) return error;
  const { message } = error;
  const named = `(selector=${JSON.stringify(selector)})`;
  const several = /resolved to (\d+) elements/.exec(message);
  if (several !== null) {
    const hint = "use a ref of browser_snapshot, or a selector that only one element has";
    return new Failure("several_elements", `${several[1]} elements match ${named}`, hint);
  }
  if (
    /not a valid selector|Unexpected token|Unsupported token|while parsing (?:css )?selector|Malformed selector/i.test(
      message,
    )
  ) {
    return new Failure("bad_selector", `it is no CSS selector ${named}`, `correct it, or ${SNAPSHOT_AGAIN}`);
  }
  const unfit =
    /Element is not an? (<[^\n]+?)(?:\n|$)|(Input of type "[^"]+" cannot be filled)|(Node is not an HTMLInputElement[^\n]*)|(Element is not a <select> element)/.exec(
      message,
    );
  if (unfit !== null) {
    return new Failure(
      "wrong_element",
      `the element cannot be used like this ${named}: ${firstLine(message)}`,
      "choose a field of browser_snapshot that fits",
    );
  }
  const refused = REFUSED_FILES.find(([words]) => message.includes(words));
  if (refused !== undefined) return new Failure("bad_value", `${refused[1]} ${named}`, refused[2]);
  if (error.name !== "TimeoutError") return error;
  return timedOut(message, named, timeoutMs);
}

/** Playwright logs what it waited for; the last entry names the obstacle. */
function timedOut(log: string, named: string, timeoutMs: number): Failure {
  const seconds = timeoutMs / 1000;
  if (!log.includes("locator resolved to"))
    return new Failure("element_not_found", `element not found ${named}`, SNAPSHOT_AGAIN);
  const cover = [...log.matchAll(/(<[^\n]+>[^\n]*) intercepts pointer events/g)].at(-1)?.[1];
  if (cover !== undefined) {
    const hint = "close or move away what covers it (a dialog, banner or menu), then try again";
    return new Failure("element_covered", `the element is covered ${named} by ${cover.slice(0, 200)}`, hint);
  }
  const state = [...log.matchAll(/element is (not \w+|outside of the viewport)/g)].at(-1)?.[1];
  if (state === "not enabled")
    return new Failure(
      "element_disabled",
      `the element is disabled ${named}`,
      "do first what enables it, such as filling the required fields",
    );
  if (state === "not editable")
    return new Failure(
      "element_disabled",
      `the field is read-only ${named}`,
      "choose another field, or do first what makes it editable",
    );
  if (state === "not visible")
    return new Failure(
      "element_hidden",
      `the element is not visible ${named}`,
      "open what hides it (a menu or section), then call browser_snapshot again",
    );
  if (log.includes("did not find some options"))
    return new Failure(
      "no_such_option",
      `there is no such option ${named}`,
      "use one of the options that browser_snapshot lists",
    );
  return new Failure(
    "timeout",
    `nothing could be done with the element in ${seconds} s ${named}: it is ${state ?? "busy"}`,
    "call browser_snapshot to see the page as it is",
  );
}

function firstLine(message: string): string {
  return (message.split("\n", 1)[0] ?? "").replace(/^\w+\.\w+: (?:Error: )?/, "").slice(0, 200);
}
