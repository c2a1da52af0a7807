const { commands } = require("vscode");

exports.activate = () => commands.executeCommand("asyncagents.tasks.focus");
