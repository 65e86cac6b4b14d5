import type { JSX } from "preact";
import type { HandlerList, ProblemFacts, SkillList } from "../../../../src/operator/contract-policy.ts";
import { Badge } from "../../parts/badge.tsx";
import { visibleText } from "../../parts/format.ts";
import { Empty, Loading, Problem } from "../../parts/problem.tsx";
import { href } from "../../routing/router.ts";
import { useResource } from "../../server/use-resource.ts";
import { Page } from "../../shell/page.tsx";

export function SkillsView({ rest: [name] }: { readonly rest: readonly string[] }): JSX.Element {
  if (name !== undefined) {
    return (
      <Page
        title={`Skill ${name}`}
        actions={
          <a class="button" href={href(["skills"])}>
            All skills
          </a>
        }
      >
        <Skills name={name} />
      </Page>
    );
  }
  return (
    <Page title="Skills and handlers">
      <Skills />
      <Handlers />
    </Page>
  );
}

/** All skills, or the one with this name. */
function Skills({ name: only }: { readonly name?: string }): JSX.Element {
  const list = useResource<SkillList>("skills");
  const skills = list.data?.skills.filter(({ name }) => only === undefined || name === only) ?? [];
  return (
    <section aria-labelledby="skills-title">
      <h2 id="skills-title">Skills</h2>
      <Problem error={list.error} onRetry={list.reload} />
      {list.data === undefined ? (
        list.isLoading ? (
          <Loading what="skills" />
        ) : null
      ) : (
        <>
          {only === undefined ? <Problems problems={list.data.problems} /> : null}
          {skills.length === 0 ? (
            <Empty title={only === undefined ? "No skill is served." : "There is no skill of this name."}>
              Folders with a SKILL.md become skills.
            </Empty>
          ) : null}
          <dl class="shelf">
            {skills.map(({ uri, name, description }) => (
              <div key={uri}>
                <dt>
                  <a href={href(["skills", name])}>{visibleText(name)}</a>
                </dt>
                <dd>
                  {visibleText(description)} <span class="mono muted">{visibleText(uri)}</span>
                </dd>
              </div>
            ))}
          </dl>
        </>
      )}
    </section>
  );
}

function Handlers(): JSX.Element {
  const list = useResource<HandlerList>("handlers");
  return (
    <section aria-labelledby="handlers-title">
      <h2 id="handlers-title">Handlers</h2>
      <Problem error={list.error} onRetry={list.reload} />
      {list.data === undefined ? (
        list.isLoading ? (
          <Loading what="handlers" />
        ) : null
      ) : (
        <>
          <Problems problems={list.data.problems} />
          {list.data.handlers.length === 0 ? (
            <Empty title="No handler is loaded.">Functions in TypeScript or Python become tools.</Empty>
          ) : null}
          <dl class="shelf">
            {list.data.handlers.map(({ tool, description }) => (
              <div key={tool}>
                <dt>
                  <a class="mono" href={href(["tools", tool])}>
                    {visibleText(tool)}
                  </a>
                </dt>
                <dd>{visibleText(description)}</dd>
              </div>
            ))}
          </dl>
        </>
      )}
    </section>
  );
}

function Problems({ problems }: { readonly problems: readonly ProblemFacts[] }): JSX.Element | null {
  if (problems.length === 0) return null;
  return (
    <ul class="problems">
      {problems.map(({ file, line, severity, message, fix }) => (
        <li key={`${file}:${line ?? 0} ${message}`}>
          <Badge text={severity} tone={severity === "error" ? "bad" : "warn"} />
          <span class="mono">{`${visibleText(file)}${line === undefined ? "" : `:${line}`}`}</span>
          <span>
            {visibleText(message)} {fix === undefined ? null : <em>{visibleText(fix)}</em>}
          </span>
        </li>
      ))}
    </ul>
  );
}
