import type { JSX } from "preact";
import type { ToolFacts, ToolList } from "../../../../src/operator/contract-policy.ts";
import { visibleText } from "../../parts/format.ts";
import { Empty, Loading, Problem } from "../../parts/problem.tsx";
import { changeQuery, href, place } from "../../routing/router.ts";
import { useResource } from "../../server/use-resource.ts";
import { Page } from "../../shell/page.tsx";
import { Marks } from "./tool-marks.tsx";
import { ToolTrial } from "./tool-trial.tsx";

export function ToolsView({ rest: [name] }: { readonly rest: readonly string[] }): JSX.Element {
  const list = useResource<ToolList>("tools");
  const tool = list.data?.tools.find((candidate) => candidate.name === name);
  return (
    <Page
      title={name === undefined ? "Tools" : `Tool ${name}`}
      actions={
        name === undefined ? null : (
          <a class="button" href={href(["tools"])}>
            All tools
          </a>
        )
      }
    >
      <Problem error={list.error} onRetry={list.reload} />
      {list.data === undefined ? (
        list.isLoading ? (
          <Loading what="tools" />
        ) : null
      ) : name === undefined ? (
        <ToolShelf tools={list.data.tools} />
      ) : tool === undefined ? (
        <Empty title="There is no tool of this name." />
      ) : (
        <ToolTrial key={tool.name} tool={tool} />
      )}
    </Page>
  );
}

function ToolShelf({ tools }: { readonly tools: readonly ToolFacts[] }): JSX.Element {
  const text = place.value.query.get("filter") ?? "";
  const wanted = text.toLowerCase();
  const shown = tools.filter(({ name, title, description }) =>
    [name, title, description].some((field) => field.toLowerCase().includes(wanted)),
  );
  const sets = [...new Set(shown.map(({ toolset }) => toolset))];
  return (
    <>
      <input
        type="search"
        aria-label="Filter tools"
        placeholder="Filter"
        data-filter
        value={text}
        onInput={(event) => changeQuery({ filter: event.currentTarget.value || undefined })}
      />
      {shown.length === 0 ? <Empty title={tools.length === 0 ? "There are no tools." : "No tool matches."} /> : null}
      {sets.map((toolset) => (
        <section key={toolset} aria-label={toolset}>
          <h2>{visibleText(toolset)}</h2>
          <dl class="shelf">
            {shown
              .filter((tool) => tool.toolset === toolset)
              .map((tool) => (
                <div key={tool.name}>
                  <dt>
                    <a class="mono" href={href(["tools", tool.name])}>
                      {visibleText(tool.name)}
                    </a>
                  </dt>
                  <dd>
                    {visibleText(firstSentence(tool.description))} <Marks tool={tool} />
                  </dd>
                </div>
              ))}
          </dl>
        </section>
      ))}
    </>
  );
}

function firstSentence(text: string): string {
  const end = text.search(/[.!?](\s|$)/);
  return end === -1 ? text : text.slice(0, end + 1);
}
