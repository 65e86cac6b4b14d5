import type { FunctionComponent, JSX } from "preact";
import type { PastSandbox } from "../../../../src/operator/contract-files.ts";
import type { SandboxAbility, SandboxDetail, SandboxNow } from "../../../../src/operator/contract.ts";
import { now } from "../../live/now-store.ts";
import { Badge } from "../../parts/badge.tsx";
import { bytesOf, visibleText } from "../../parts/format.ts";
import { Loading, Problem } from "../../parts/problem.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import { Age, Until } from "../../parts/time.tsx";
import { href } from "../../routing/router.ts";
import { useResource } from "../../server/use-resource.ts";
import { Page } from "../../shell/page.tsx";
import { BrowserTab } from "./browser-tab.tsx";
import { CellsTab } from "./cells-tab.tsx";
import { ChangesTab } from "./changes-tab.tsx";
import { FilesTab } from "./files-tab.tsx";
import { NetworkTab } from "./network-tab.tsx";
import { ProcessesTab } from "./processes-tab.tsx";
import { SandboxActions } from "./sandbox-actions.tsx";
import { type ShownSandbox, shownSandbox } from "./shown-sandbox.ts";
import { TerminalTab } from "./terminal-tab.tsx";

interface TabView {
  readonly title: string;
  readonly view: FunctionComponent<{ readonly sandbox: ShownSandbox }>;
  /** The ability that the tab needs. Tabs without it are always shown. */
  readonly needs?: SandboxAbility;
  /** Whether the tab shows received data, which stays readable after the sandbox has ended. */
  readonly isKept?: boolean;
}

const TABS: Readonly<Record<string, TabView>> = {
  terminal: { title: "Terminal", view: TerminalTab, isKept: true },
  cells: { title: "Code", view: CellsTab, isKept: true },
  browser: { title: "Browser", view: BrowserTab, needs: "browser" },
  files: { title: "Files", view: FilesTab, needs: "files" },
  changes: { title: "Changes", view: ChangesTab, needs: "changes" },
  processes: { title: "Processes", view: ProcessesTab, needs: "processes" },
  network: { title: "Network", view: NetworkTab, needs: "network", isKept: true },
};

export function SandboxView({ rest: [id = "", tab = "terminal"] }: { readonly rest: readonly string[] }): JSX.Element {
  const current = now.value;
  if (current === undefined) {
    return (
      <Page title={`Sandbox ${id}`}>
        <Loading what="the sandbox" />
      </Page>
    );
  }
  return <KnownSandbox key={id} id={id} tab={tab} live={current.sandboxes.find((sandbox) => sandbox.id === id)} />;
}

interface KnownSandboxProps {
  readonly id: string;
  readonly tab: string;
  /** Undefined when the sandbox has ended. */
  readonly live: SandboxNow | undefined;
}

function KnownSandbox({ id, tab, live }: KnownSandboxProps): JSX.Element {
  const isAlive = live !== undefined;
  // A sandbox that has ended has no details to request.
  const detail = useResource<SandboxDetail>(isAlive ? `sandboxes/${encodeURIComponent(id)}` : undefined);
  const sandbox = detail.data === undefined ? undefined : shownSandbox(detail.data, live);
  const isShown = sandbox !== undefined;
  return (
    <Page
      title={`Sandbox ${id}`}
      actions={isShown && isAlive ? <SandboxActions sandbox={sandbox} onChange={detail.reload} /> : null}
    >
      {isAlive ? (
        <Problem error={detail.error} onRetry={detail.reload} />
      ) : (
        <GoneNote id={id} ledgerId={sandbox?.ledgerId} />
      )}
      {isAlive && detail.isLoading && !isShown ? <Loading what="the sandbox" /> : null}
      {isShown ? <Body sandbox={sandbox} tab={tab} /> : null}
    </Page>
  );
}

function GoneNote({ id, ledgerId }: { readonly id: string; readonly ledgerId: string | undefined }): JSX.Element {
  const past = useResource<PastSandbox>(
    ledgerId === undefined ? `past-sandboxes/${encodeURIComponent(id)}` : undefined,
  );
  const sandbox = ledgerId ?? past.data?.ledgerId ?? undefined;
  return (
    <div class="note" role="status">
      <p>
        This sandbox is no longer alive.{" "}
        {sandbox === undefined && past.data === undefined ? null : (
          <>
            {sandbox === undefined
              ? "It is not known any more which rows are its own in the "
              : "What was done in it: "}
            <a href={href(["ledger"], { sandbox })}>{sandbox === undefined ? "ledger" : "its rows of the ledger"}</a>.
          </>
        )}
      </p>
    </div>
  );
}

function Body({ sandbox, tab }: { readonly sandbox: ShownSandbox; readonly tab: string }): JSX.Element {
  const tabs = Object.entries(TABS).filter(
    ([, { needs, isKept }]) =>
      (sandbox.isAlive || isKept === true) && (needs === undefined || sandbox.can.includes(needs)),
  );
  const shown = tabs.find(([name]) => name === tab) ?? tabs[0];
  if (shown === undefined) return <Facts sandbox={sandbox} />;
  const [name, { view: Shown }] = shown;
  const links = tabs.map(([other, { title }]) => ({ name: other, title, to: href(["sandboxes", sandbox.id, other]) }));
  return (
    <>
      <Facts sandbox={sandbox} />
      <Tabs label="Views of this sandbox" tabs={links} current={name} />
      <Shown sandbox={sandbox} />
    </>
  );
}

function Facts({ sandbox }: { readonly sandbox: SandboxNow & Pick<SandboxDetail, "networkAllow"> }): JSX.Element {
  return (
    <dl class="facts">
      <div>
        <dt>State</dt>
        <dd>
          <Badge text={sandbox.state} />{" "}
          {sandbox.running === null ? null : <span class="mono">{visibleText(sandbox.running)}</span>}
        </dd>
      </div>
      <div>
        <dt>Owner</dt>
        <dd>
          <a href={href(["policy"], { client: sandbox.owner })}>{visibleText(sandbox.owner)}</a>,{" "}
          <a href={href(["ledger"], { sandbox: sandbox.ledgerId })}>all calls</a>
        </dd>
      </div>
      <div>
        <dt>Template</dt>
        <dd>
          {visibleText(sandbox.template)} <span class="muted">{`${sandbox.flavor} on ${sandbox.runtime}`}</span>
        </dd>
      </div>
      <div>
        <dt>CPU and memory</dt>
        <dd class="num">
          {sandbox.cpuPercent === undefined ? "–" : `${Math.round(sandbox.cpuPercent)} %`},{" "}
          {sandbox.memoryBytes === undefined ? "–" : bytesOf(sandbox.memoryBytes)}
        </dd>
      </div>
      <div>
        <dt>Age</dt>
        <dd>
          <Age since={sandbox.createdAt} />, ends <Until time={sandbox.expiresAt} />
        </dd>
      </div>
      <div>
        <dt>May reach</dt>
        <dd>{sandbox.networkAllow.length === 0 ? "nothing" : visibleText(sandbox.networkAllow.join(", "))}</dd>
      </div>
    </dl>
  );
}
