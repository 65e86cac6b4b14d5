import type { JSX } from "preact";
import type { ResumeRequest } from "../../../src/operator/contract-policy.ts";
import type { Pause } from "../../../src/operator/contract.ts";
import { pauses } from "../live/now-store.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { visibleText } from "../parts/format.ts";
import { Age } from "../parts/time.tsx";
import { post } from "../server/api.ts";

/** Shown on every page while a client is paused. */
export function PauseBanner(): JSX.Element | null {
  if (pauses.value.length === 0) return null;
  return (
    <section class="pause-banner" aria-label="Paused clients">
      {pauses.value.map((pause) => (
        <PauseLine key={pause.client} pause={pause} />
      ))}
    </section>
  );
}

function PauseLine({ pause }: { readonly pause: Pause }): JSX.Element {
  const isEverybody = pause.client === "*";
  const resume = async (): Promise<void> => {
    const request: ResumeRequest = isEverybody ? {} : { client: pause.client };
    await post("resume", request);
  };
  return (
    <div class="pause-line">
      <p>
        <strong>{isEverybody ? "All clients are paused" : `${visibleText(pause.client)} is paused`}</strong> by{" "}
        {visibleText(pause.by)}, <Age since={pause.since} /> ago: {visibleText(pause.reason)}
      </p>
      <ActionButton
        class="small"
        label={isEverybody ? "Resume all" : `Resume ${visibleText(pause.client)}`}
        work={resume}
      />
    </div>
  );
}
