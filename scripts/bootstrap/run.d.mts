export function findBun(root: string): string;
export function becomeBun(root: string, script: string, args: string[]): void;
export function fail(message: string): never;
