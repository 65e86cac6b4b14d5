import { render } from "preact";
import { App } from "./app.tsx";
import { startRouter } from "./routing/router.ts";
import { followTheme } from "./shell/theme.ts";

const root = document.getElementById("app");
if (root === null) throw new Error("index.html has no #app");
followTheme();
startRouter();
render(<App />, root);
