import type { FunctionComponent, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Loading, Problem } from "./parts/problem.tsx";
import { href, segments } from "./routing/router.ts";
import { session } from "./server/api.ts";
import { currentSession } from "./server/current-session.ts";
import { LoginView } from "./session/login-view.tsx";
import { Fallible } from "./shell/fallible.tsx";
import { Frame } from "./shell/frame.tsx";
import { Page } from "./shell/page.tsx";

type View = FunctionComponent<{ readonly rest: readonly string[] }>;

/** Each view is a separate bundle that is loaded at its first use. */
const VIEWS: Readonly<Record<string, () => Promise<View>>> = {
  "": async () => (await import("./views/now/now-view.tsx")).NowView,
  sandboxes: async () => (await import("./views/sandbox/sandbox-view.tsx")).SandboxView,
  approvals: async () => (await import("./views/approvals/approvals-view.tsx")).ApprovalsView,
  ledger: async () => (await import("./views/ledger/ledger-view.tsx")).LedgerView,
  spend: async () => (await import("./views/spend/spend-view.tsx")).SpendView,
  policy: async () => (await import("./views/policy/policy-view.tsx")).PolicyView,
  tools: async () => (await import("./views/tools/tools-view.tsx")).ToolsView,
  skills: async () => (await import("./views/skills/skills-view.tsx")).SkillsView,
};

export function App(): JSX.Element {
  const [error, setError] = useState<unknown>(undefined);
  const ask = (): void => {
    setError(undefined);
    currentSession().then((answer) => {
      session.value = answer;
    }, setError);
  };
  useEffect(ask, []);
  const current = session.value;
  if (current === undefined) return <LoginView />;
  if (current === "unknown") {
    return (
      <main id="main" class="login">
        {error === undefined ? null : <Problem error={error} onRetry={ask} />}
      </main>
    );
  }
  return (
    <Frame session={current}>
      <CurrentView />
    </Frame>
  );
}

function CurrentView(): JSX.Element {
  const [section = "", ...rest] = segments.value;
  const [loaded, setLoaded] = useState<{ section: string; view: View } | undefined>(undefined);
  const [error, setError] = useState<unknown>(undefined);
  // Properties that every object inherits are not views.
  const load = Object.hasOwn(VIEWS, section) ? VIEWS[section] : undefined;
  useEffect(() => {
    let isLeft = false;
    setError(undefined);
    load?.().then(
      (view) => {
        if (!isLeft) setLoaded({ section, view });
      },
      (failure: unknown) => setError(failure),
    );
    return () => {
      isLeft = true;
    };
  }, [section]);
  if (load === undefined) return <NotFound />;
  if (error !== undefined) return <Problem error={error} onRetry={() => location.reload()} />;
  if (loaded === undefined || loaded.section !== section) return <Loading what="the page" />;
  const { view: Shown } = loaded;
  return (
    <Fallible key={section}>
      <Shown rest={rest} />
    </Fallible>
  );
}

function NotFound(): JSX.Element {
  return (
    <Page title="No such page">
      <p>
        Nothing is at this address. <a href={href([])}>See what happens now</a>
      </p>
    </Page>
  );
}
