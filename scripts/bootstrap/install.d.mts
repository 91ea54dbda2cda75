export const root: string;
export function ensureInstalled(directory?: string): Promise<void>;
export function whyInstall(directory: string): string | undefined;
export function linkProgram(directory: string): void;
