import { z } from "zod";
import { toOwlError } from "../errors/owl-error.ts";
import { count, fieldFacts, seconds } from "./field.ts";
import { parseAllowRule } from "./hosts/allow-rule.ts";
import { isWorkspacePath, whyNoEnvName } from "./value-rules.ts";
import { TEMPLATE_NAME } from "./template-name.ts";
import { isVolume } from "./volume.ts";

const pool = z
  .strictObject({
    size: z.int().min(0).max(1000).default(2).describe("Sandboxes that wait, started and warm. 0: none."),
    preload: z
      .array(z.string().regex(/^[A-Za-z_][\w.]*$/, "must be the name of a Python module"))
      .default([])
      .describe("Python modules that waiting sandboxes have imported already, such as numpy and pandas."),
  })
  .prefault({})
  .describe("Sandboxes that are started before anybody asks.");

const allowRule = z
  .string()
  .min(1, { abort: true })
  .superRefine((text, context) => {
    try {
      parseAllowRule(text);
    } catch (thrown) {
      const { message, hint, facts } = toOwlError(thrown);
      const { reason = message } = facts;
      context.addIssue({ code: "custom", message: String(reason), params: { fix: hint } });
    }
  });

const network = z
  .strictObject({
    allow: z
      .array(allowRule)
      .default([])
      .describe("Hosts that sandboxes may reach, such as example.com, *.example.com, pip or npm. Empty: no network."),
    templates: z
      .record(z.string().regex(TEMPLATE_NAME, "must be the name of a template"), z.array(allowRule))
      .default({})
      .describe("For sandboxes of a template, in place of allow: template to hosts."),
    shareVolumes: z
      .boolean()
      .default(false)
      .describe(
        "Writable volumes are shared by sandboxes with a network and sandboxes without: one can pass data to the other.",
      ),
  })
  .prefault({})
  .describe("What sandboxes may reach.");

const browser = z
  .strictObject({
    executable: z
      .string()
      .default("")
      .describe("Chromium or Chrome on this machine, for the browser in sandboxes. Empty: the system's own.")
      .register(fieldFacts, { path: "file" }),
  })
  .prefault({})
  .describe("The browser in sandboxes.");

const RUNTIMES = ["auto", "bubblewrap", "docker", "microsandbox"] as const;

const docker = z
  .strictObject({
    host: z
      .string()
      .trim()
      .default("")
      .describe("Where the engine listens, as unix:///path or tcp://host:2376. Empty: the machine's own Docker.")
      .register(fieldFacts, { env: ["DOCKER_HOST"] }),
    certFolder: z
      .string()
      .default("")
      .describe("Folder with ca.pem, cert.pem and key.pem, for an engine on another machine.")
      .register(fieldFacts, { path: "file", env: ["DOCKER_CERT_PATH"] }),
    runtime: z
      .string()
      .trim()
      .default("")
      .describe("What the engine starts containers with, such as runsc (gVisor). Empty: its default."),
  })
  .prefault({})
  .describe("The container engine of the runtime docker: Docker or Podman.");

const templates = z
  .record(
    z.string().regex(TEMPLATE_NAME, "must be the name of a template"),
    z.strictObject({
      runtime: z.enum(RUNTIMES).optional().describe("In place of sandbox.runtime."),
      image: z.string().trim().min(1).optional().describe("In place of sandbox.image."),
    }),
  )
  .default({})
  .describe("For sandboxes of a template: template to runtime and image.");

export const sandbox = z
  .strictObject({
    enabled: z
      .boolean()
      .default(true)
      .describe("Serves the built-in tools and starts what they need. false: your own handlers only."),
    root: z
      .string()
      .default("")
      .describe("The data folder: everything the server writes is below it. Empty: owlclaw in the user's data folder.")
      .register(fieldFacts, { path: "file", env: ["SANDBOX_ROOT"] }),
    workspace: z
      .string()
      .refine(isWorkspacePath, "must be an absolute path outside the system's own folders, such as /workspace")
      .default("/workspace")
      .describe("Where the workspace is inside a sandbox.")
      .register(fieldFacts, { env: ["SANDBOX_WORKSPACE"] }),
    runtime: z
      .enum(RUNTIMES)
      .default("auto")
      .describe("What isolates sandboxes. auto: the first one that works here of bubblewrap, docker and microsandbox."),
    image: z
      .string()
      .trim()
      .min(1)
      .default("owlclaw-sandbox")
      .describe(
        "With docker and microsandbox: the image that sandboxes start from. It must be there; nothing is pulled.",
      ),
    templates,
    docker,
    template: z
      .string()
      .regex(TEMPLATE_NAME, "must be lower-case letters, digits, - or _, as template list shows them")
      .default("python")
      .describe("What a sandbox has inside when nobody asks: python, node, or one built with template build."),
    flavor: z
      .enum(["small", "medium", "large"])
      .default("small")
      .describe("How much a sandbox may use when nobody asks: small 1 CPU and 1 GiB, medium 2 and 2, large 4 and 4.")
      .register(fieldFacts, { env: ["MSB_DEFAULT_FLAVOR"] }),
    autoCreate: z
      .boolean()
      .default(true)
      .describe("A call without session_id makes a sandbox. false: only sandbox_create does."),
    idleTimeoutSeconds: seconds()
      .default(1800)
      .describe("A sandbox that is not used for this long ends.")
      .register(fieldFacts, { env: ["MSB_SESSION_TIMEOUT"] }),
    maxAgeSeconds: seconds().default(86_400).describe("A sandbox ends at this age at the latest."),
    maxPerPrincipal: count().default(10).describe("Most sandboxes of one caller."),
    maxTotal: count()
      .default(50)
      .describe("Most sandboxes of all callers.")
      .register(fieldFacts, { env: ["MSB_MAX_SESSIONS"] }),
    maxTotalMemoryMb: z
      .int()
      .min(0)
      .max(1_000_000_000)
      .default(0)
      .describe("Most memory, in MiB, that all flavors together may promise. 0: twice what the machine has.")
      .register(fieldFacts, { env: ["MSB_MAX_TOTAL_MEMORY_MB"] }),
    diskReserveMb: z
      .int()
      .min(0)
      .max(1_000_000_000)
      .default(1024)
      .describe(
        "Space, in MiB, on the disk of the data folder that no workspace gets: it is for the ledger. A sandbox whose workspace may not fit into what is left is refused.",
      ),
    evictIdle: z
      .boolean()
      .default(true)
      .describe(
        "At one of these limits an idle sandbox ends: the caller's own first, then one of the client with the most. false: the new one is refused.",
      )
      .register(fieldFacts, { env: ["MSB_ENABLE_LRU_EVICTION"] }),
    limits: z
      .enum(["required", "best-effort"])
      .default("required")
      .describe("best-effort starts sandboxes where the kernel cannot enforce every limit."),
    volumes: z
      .array(z.string().refine(isVolume, "must be a folder, host:guest or host:guest:ro"))
      .default([])
      .describe(
        "Folders of this machine that every sandbox sees, as host:guest or host:guest:ro; host alone is the workspace.",
      )
      .register(fieldFacts, { path: "volume", env: ["MSB_SHARED_VOLUME_PATH"] }),
    env: z
      .record(z.string(), z.string())
      .superRefine((env, context) => {
        for (const name of Object.keys(env)) {
          const message = whyNoEnvName(name);
          if (message !== undefined) context.addIssue({ code: "custom", path: [name], message });
        }
      })
      .default({})
      .describe("Environment variables inside every sandbox.")
      .register(fieldFacts, { secret: true }),
    network,
    browser,
    pool,
    codeTimeoutSeconds: seconds()
      .default(60)
      .describe("Time that code and commands get when the call says nothing.")
      .register(fieldFacts, { env: ["MSB_EXECUTION_TIMEOUT"] }),
    keepWorkspaces: z.boolean().default(false).describe("Leaves the files of a sandbox on disk when it ends."),
  })
  .prefault({})
  .describe("Where the server keeps its data, and how sandboxes live.");
