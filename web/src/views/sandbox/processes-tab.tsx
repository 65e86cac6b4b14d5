import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { ProcessList, SandboxProcess } from "../../../../src/operator/contract-files.ts";
import { streamState } from "../../live/now-store.ts";
import { announce } from "../../parts/announcer.tsx";
import { ConfirmButton } from "../../parts/confirm-button.tsx";
import { bytesOf, visibleText } from "../../parts/format.ts";
import { Empty, Loading, Problem } from "../../parts/problem.tsx";
import { Age } from "../../parts/time.tsx";
import { post } from "../../server/api.ts";
import { useResource } from "../../server/use-resource.ts";
import { end, TableHead, unseen } from "../../parts/table-head.tsx";
import type { ShownSandbox } from "./shown-sandbox.ts";

const REFRESH_MS = 3_000;

export function ProcessesTab({ sandbox }: { readonly sandbox: ShownSandbox }): JSX.Element {
  const path = `sandboxes/${encodeURIComponent(sandbox.id)}/processes`;
  const list = useResource<ProcessList>(path);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden && streamState.peek() === "open") list.reload();
    }, REFRESH_MS);
    return () => clearInterval(timer);
  }, [path]);
  if (list.data === undefined)
    return list.error === undefined ? (
      <Loading what="processes" />
    ) : (
      <Problem error={list.error} onRetry={list.reload} />
    );
  if (list.data.processes.length === 0) return <Empty title="No process of the client's runs in this sandbox." />;
  const kill = async (pid: number): Promise<void> => {
    await post(`${path}/${pid}/kill`);
    announce(`Process ${pid} was ended.`);
    list.reload();
  };
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Processes">
      <table>
        <TableHead
          columns={[end("PID"), end("Parent"), "Command", end("CPU"), end("Memory"), end("Age"), unseen("Actions")]}
        />
        <tbody>
          {list.data.processes.map((process) => (
            <ProcessRow key={process.pid} process={process} kill={() => kill(process.pid)} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function ProcessRow({
  process,
  kill,
}: {
  readonly process: SandboxProcess;
  readonly kill: () => Promise<void>;
}): JSX.Element {
  return (
    <tr>
      <td class="end num">{process.pid}</td>
      <td class="end num">{process.parent}</td>
      <td class="mono wide" title={visibleText(process.command)}>
        {visibleText(process.command)}
      </td>
      <td class="end num">{process.cpuPercent === undefined ? "–" : `${Math.round(process.cpuPercent)} %`}</td>
      <td class="end num">{process.memoryBytes === undefined ? "–" : bytesOf(process.memoryBytes)}</td>
      <td class="end">{process.startedAt === undefined ? "–" : <Age since={process.startedAt} />}</td>
      <td class="end">
        <ConfirmButton
          class="small danger"
          label={`Kill ${process.pid}`}
          question={`Kill process ${process.pid}?`}
          explanation={visibleText(process.command)}
          work={kill}
        />
      </td>
    </tr>
  );
}
