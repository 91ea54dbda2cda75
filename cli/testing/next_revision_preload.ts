// As in the single executable, which brings its revisions along.
Object.assign(globalThis, { SVC_REVISIONS: await Bun.file(process.env.TEST_REVISIONS ?? "").json() });

export {};
