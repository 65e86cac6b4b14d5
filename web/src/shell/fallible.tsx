import { Component, type ComponentChildren } from "preact";
import { Problem } from "../parts/problem.tsx";
import { Page } from "./page.tsx";

interface FallibleProps {
  readonly children: ComponentChildren;
}

/** A view that cannot be drawn says so in its place; the switch that pauses clients stays within reach. */
export class Fallible extends Component<FallibleProps, { readonly error: unknown }> {
  override state = { error: undefined };

  static override getDerivedStateFromError(error: unknown): { readonly error: unknown } {
    return { error };
  }

  override render(): ComponentChildren {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    return (
      <Page title="This page cannot be shown">
        <Problem error={error} onRetry={() => location.reload()} />
      </Page>
    );
  }
}
