import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { FileText } from "../../../../src/operator/contract-files.ts";
import { announce } from "../../parts/announcer.tsx";
import { CodeBlock } from "../../parts/code-block.tsx";
import { bytesOf, visibleText } from "../../parts/format.ts";
import { Empty, Loading, Problem } from "../../parts/problem.tsx";
import { changeQuery, place } from "../../routing/router.ts";
import { apiUrl, put } from "../../server/api.ts";
import { useAction } from "../../server/use-action.ts";
import { useResource } from "../../server/use-resource.ts";
import { FileTree } from "./file-tree.tsx";
import { Form } from "../../parts/form.tsx";
import type { ShownSandbox } from "./shown-sandbox.ts";

export function FilesTab({ sandbox }: { readonly sandbox: ShownSandbox }): JSX.Element {
  const file = place.value.query.get("path") ?? undefined;
  const [folder, setFolder] = useState(sandbox.workspace);
  const [round, setRound] = useState(0);
  const path = `sandboxes/${encodeURIComponent(sandbox.id)}`;
  return (
    <div class="files">
      <section aria-labelledby="tree-title">
        <header class="section-head">
          <h2 id="tree-title">Files</h2>
          <button type="button" class="small quiet" onClick={() => setRound(round + 1)}>
            Refresh
          </button>
        </header>
        <FileTree key={round} sandboxPath={path} root={sandbox.workspace} selected={file} onFolder={setFolder} />
        <Upload sandboxPath={path} folder={folder} onDone={() => setRound(round + 1)} />
      </section>
      <section aria-labelledby="file-title" class="file-shown">
        {file === undefined ? (
          <>
            <h2 id="file-title" class="unseen">
              File
            </h2>
            <Empty title="Choose a file to see it." />
          </>
        ) : (
          <FileView sandboxPath={path} path={file} />
        )}
      </section>
    </div>
  );
}

function FileView({ sandboxPath, path }: { readonly sandboxPath: string; readonly path: string }): JSX.Element {
  const file = useResource<FileText>(`${sandboxPath}/text`, { path });
  return (
    <>
      <header class="section-head">
        <h2 id="file-title" class="mono">
          {visibleText(path)}
        </h2>
        {file.data === undefined ? null : <span class="muted num">{bytesOf(file.data.sizeBytes)}</span>}
        <a class="button small" href={apiUrl(`${sandboxPath}/file`, { path })} download="">
          Download
        </a>
        <button type="button" class="small quiet" onClick={() => changeQuery({ path: undefined })}>
          Close
        </button>
      </header>
      <Problem error={file.error} onRetry={file.reload} />
      {file.data === undefined ? file.isLoading ? <Loading what="the file" /> : null : <FileBody file={file.data} />}
    </>
  );
}

function FileBody({ file }: { readonly file: FileText }): JSX.Element {
  if (file.text === undefined) return <Empty title="This file is no text.">Download it to look at it.</Empty>;
  return (
    <>
      {file.text === "" ? (
        <Empty title="This file is empty." />
      ) : (
        <CodeBlock label={`Content of ${file.path}`} text={file.text} />
      )}
      {file.truncated ? <p class="muted">Only the beginning is shown. Download the file to see all of it.</p> : null}
    </>
  );
}

interface UploadProps {
  readonly sandboxPath: string;
  readonly folder: string;
  readonly onDone: () => void;
}

function Upload({ sandboxPath, folder, onDone }: UploadProps): JSX.Element {
  const [file, setFile] = useState<File | undefined>(undefined);
  const action = useAction(async () => {
    if (file === undefined) return;
    await put(`${sandboxPath}/file`, { path: `${folder}/${file.name}` }, file);
    announce(`${file.name} is in ${folder}.`);
    onDone();
  });
  return (
    <Form class="upload" onSubmit={action.run}>
      <label class="field">
        <span>
          Upload into <span class="mono">{visibleText(folder)}</span>
        </span>
        <input type="file" onChange={(event) => setFile(event.currentTarget.files?.[0])} />
      </label>
      <button type="submit" class="small" disabled={action.isBusy || file === undefined}>
        Upload
      </button>
      <Problem error={action.error} />
    </Form>
  );
}
