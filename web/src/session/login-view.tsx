import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { LoginFacts, LoginRequest, SessionAnswer } from "../../../src/operator/contract.ts";
import { Problem } from "../parts/problem.tsx";
import { post, session } from "../server/api.ts";
import { useAction } from "../server/use-action.ts";
import { useResource } from "../server/use-resource.ts";
import { Form } from "../parts/form.tsx";

export function LoginView(): JSX.Element {
  const facts = useResource<LoginFacts>("login");
  return (
    <main id="main" class="login">
      <div class="login-box">
        <p class="brand">
          <span class="eyes" aria-hidden="true" />
          OwlClaw
        </p>
        <h1>Sign in</h1>
        <Problem error={facts.error} onRetry={facts.reload} />
        {facts.data?.by === "token" ? <TokenForm hint={facts.data.hint} /> : null}
        {facts.data?.by === "link" ? <LinkHelp hint={facts.data.hint} /> : null}
      </div>
    </main>
  );
}

function TokenForm({ hint }: { readonly hint: string }): JSX.Element {
  const [token, setToken] = useState("");
  const action = useAction(async () => {
    const request: LoginRequest = { token: token.trim() };
    session.value = await post<SessionAnswer>("login", request);
  });
  return (
    <Form onSubmit={action.run}>
      <label class="field">
        <span>Token of an operator</span>
        <input
          type="password"
          name="token"
          autoComplete="off"
          spellcheck={false}
          required
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
      </label>
      <Problem error={action.error} />
      <button type="submit" class="primary" disabled={action.isBusy}>
        Sign in
      </button>
      <p class="muted">{hint}</p>
    </Form>
  );
}

function LinkHelp({ hint }: { readonly hint: string }): JSX.Element {
  return (
    <>
      <p>This page opens with a link that works once. The server printed one when it started; this prints another:</p>
      <pre class="code">owlclaw mcp-server dashboard</pre>
      <p class="muted">{hint}</p>
    </>
  );
}
