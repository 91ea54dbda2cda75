// Like the single executable, which contains its revisions.
Object.assign(globalThis, { SVC_REVISIONS: await Bun.file(process.env.TEST_REVISIONS ?? "").json() });

export {};
