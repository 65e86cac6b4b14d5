import { Component, type ComponentChildren } from "preact";

interface StillProps<T> {
  readonly value: T;
  readonly children: (value: T) => ComponentChildren;
}

/** Renders again only when `value` is another object: of many rows, only those that changed. */
export class Still<T> extends Component<StillProps<T>> {
  override shouldComponentUpdate(next: Readonly<StillProps<T>>): boolean {
    return next.value !== this.props.value;
  }

  override render(): ComponentChildren {
    return this.props.children(this.props.value);
  }
}
