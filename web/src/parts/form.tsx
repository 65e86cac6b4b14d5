import type { ComponentChildren, JSX } from "preact";

interface FormProps {
  readonly class?: string;
  readonly onSubmit: () => void;
  readonly children: ComponentChildren;
}

/** A form that is submitted by script and never navigates. */
export function Form(props: FormProps): JSX.Element {
  return (
    <form
      class={props.class}
      onSubmit={(event) => {
        event.preventDefault();
        props.onSubmit();
      }}
    >
      {props.children}
    </form>
  );
}
