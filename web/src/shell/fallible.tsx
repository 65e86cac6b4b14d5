import { Component, type ComponentChildren } from "preact";
import { Problem } from "../parts/problem.tsx";
import { Page } from "./page.tsx";

interface FallibleProps {
  readonly children: ComponentChildren;
}

/** Shows the error of a view in place of the view. The rest of the page, such as the pause button, stays usable. */
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
