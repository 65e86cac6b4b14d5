import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { SessionAnswer } from "../../../src/operator/contract.ts";
import { approvalCount, everybodyPause, followNow, now, streamState } from "../live/now-store.ts";
import { Announcer } from "../parts/announcer.tsx";
import { visibleText } from "../parts/format.ts";
import { href, segments } from "../routing/router.ts";
import { post, session } from "../server/api.ts";
import { followInput } from "../server/attendance.ts";
import { followApprovals } from "./approval-bell.ts";
import { PauseBanner } from "./pause-banner.tsx";
import { askToPause, PauseDialogSlot } from "./pause-dialog.tsx";
import { followPauses } from "./pause-news.ts";
import { SECTIONS } from "./sections.ts";
import { HelpSlot, openHelp, useShortcuts } from "./shortcuts.tsx";
import { theme, toTheme } from "./theme.ts";

interface FrameProps {
  readonly session: SessionAnswer;
  readonly children: ComponentChildren;
}

/** The frame around every view, for operators who are logged in. */
export function Frame({ session: { operator }, children }: FrameProps): JSX.Element {
  useEffect(followInput, []);
  useShortcuts();
  useEffect(() => {
    const stops = [followNow(), followApprovals(), followPauses(operator)];
    return () => {
      for (const stop of stops) stop();
    };
  }, []);
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="top">
        <a class="brand" href={href([])}>
          <span class="eyes" aria-hidden="true" />
          OwlClaw
        </a>
        <Connection />
        <div class="top-end">
          {everybodyPause.value === undefined ? (
            <button type="button" class="danger" onClick={() => askToPause("*")}>
              Pause all
            </button>
          ) : null}
          <ThemeSwitch />
          <button type="button" class="quiet" aria-label="Keyboard shortcuts" onClick={openHelp}>
            ?
          </button>
          <span class="operator" title="Signed in">
            {visibleText(operator)}
          </span>
          <button type="button" class="quiet" onClick={() => void signOut()}>
            Sign out
          </button>
        </div>
      </header>
      <Sections />
      <main id="main" tabIndex={-1}>
        <PauseBanner />
        {children}
      </main>
      <PauseDialogSlot />
      <HelpSlot />
      <Announcer />
    </>
  );
}

function Sections(): JSX.Element {
  const [current = ""] = segments.value;
  return (
    <nav class="sections" aria-label="Sections">
      {SECTIONS.map(({ path, title }) => {
        const isCurrent = path === current || (path === "" && current === "sandboxes");
        return (
          <a key={path} href={href(path === "" ? [] : [path])} aria-current={isCurrent ? "page" : undefined}>
            {title}
            {path === "approvals" && approvalCount.value > 0 ? (
              <span class="count">
                {approvalCount.value}
                <span class="unseen"> waiting</span>
              </span>
            ) : null}
          </a>
        );
      })}
      <p class="version">{now.value === undefined ? "" : `version ${now.value.version}`}</p>
    </nav>
  );
}

function Connection(): JSX.Element {
  const words = { connecting: "Connecting…", open: "Live", lost: "Connection lost, trying again…" };
  return (
    <p class={`connection ${streamState.value}`} role="status">
      {words[streamState.value]}
    </p>
  );
}

function ThemeSwitch(): JSX.Element {
  return (
    <select
      class="quiet"
      aria-label="Theme"
      value={theme.value}
      onChange={(event) => {
        theme.value = toTheme(event.currentTarget.value);
      }}
    >
      <option value="system">Auto</option>
      <option value="light">Light</option>
      <option value="dark">Dark</option>
    </select>
  );
}

async function signOut(): Promise<void> {
  // Whatever the server responds, the page drops all data of the session.
  await post("logout").catch(() => undefined);
  session.value = undefined;
  now.value = undefined;
}
