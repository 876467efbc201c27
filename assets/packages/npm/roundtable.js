#!/usr/bin/env node
// Starts the binary of this platform, which is in a package of its own: package.json lists them in
// optionalDependencies, and npm installs the one whose os, cpu and libc fit.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

function binary() {
  const glibc = process.platform === "linux" && process.report.getReport().header.glibcVersionRuntime;
  const musl = process.platform === "linux" && !glibc ? "-musl" : "";
  const name = `roundtable-tui-${process.platform}-${process.arch}${musl}`;
  try {
    return require.resolve(`${name}/bin/roundtable`);
  } catch {
    const known = Object.keys(require("../package.json").optionalDependencies);
    console.error(
      known.includes(name)
        ? `error: the package ${name}, which has the program for this platform, is not installed\n` +
            "  cause: optional dependencies were left out (--no-optional, --omit=optional), or\n" +
            "         node_modules was copied from another platform\n" +
            "  help: install roundtable-tui again on this machine, with optional dependencies"
        : `error: roundtable has no build for ${process.platform} on ${process.arch}\n` +
            "  help: there are builds for Linux and macOS, on x64 and arm64; elsewhere try\n" +
            "        `cargo install roundtable-tui`, which compiles it",
    );
    process.exit(1);
  }
}

const program = binary();
const args = process.argv.slice(2);

// Where node can replace itself by the program, nothing is between it and its caller.
if (process.execve) {
  process.removeAllListeners("warning"); // "execve is an experimental feature"
  process.execve(program, [program, ...args], process.env);
}

// An older node stays between them. Signals of the terminal (Ctrl-C) reach the program directly, and a second one
// would end it at once, so they are not forwarded.
const child = spawn(program, args, { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGQUIT"]) process.on(signal, () => {});
for (const signal of ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`error: ${program} cannot be started\n  cause: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
