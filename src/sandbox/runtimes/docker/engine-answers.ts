import { z } from "zod";

export const createdSchema = z.object({ Id: z.string().regex(/^[0-9a-f]{12,128}$/) });

export const stateSchema = z.object({
  State: z.object({
    Running: z.boolean(),
    ExitCode: z.number().int(),
    OOMKilled: z.boolean(),
    Pid: z.number().int().default(0),
  }),
});

export const waitSchema = z.object({ StatusCode: z.number().int() });

const labels = z
  .record(z.string(), z.string())
  .nullish()
  .transform((found) => found ?? {});

export const labelledSchema = z.object({ Id: z.string(), Config: z.object({ Labels: labels }) });

const names = z
  .array(z.string())
  .nullish()
  .transform((found) => found ?? []);

export const containersSchema = z.array(
  z.object({ Id: z.string(), Names: names, Labels: labels, State: z.string().default("") }),
);

export const volumesSchema = z.object({
  Volumes: z
    .array(z.object({ Name: z.string(), Labels: labels }))
    .nullish()
    .transform((found) => found ?? []),
});

export const volumeSchema = z.object({ Mountpoint: z.string().default("") });

export const statsSchema = z.object({
  memory_stats: z.object({ usage: z.number().default(0) }).default({ usage: 0 }),
  pids_stats: z.object({ current: z.number().default(0) }).default({ current: 0 }),
  cpu_stats: z.object({ cpu_usage: z.object({ total_usage: z.number().default(0) }) }),
});
