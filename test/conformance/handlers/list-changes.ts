import { defineHandler } from "owlclaw";

export const triggerToolChange = defineHandler({
  name: "test_trigger_tool_change",
  description: "Tells clients that the list of tools has changed",
  run(_input, context) {
    context.listChanged("tools");
    return "Mutation triggered";
  },
});

export const triggerPromptChange = defineHandler({
  name: "test_trigger_prompt_change",
  description: "Tells clients that the list of prompts has changed",
  run(_input, context) {
    context.listChanged("prompts");
    return "Mutation triggered";
  },
});
