export function whyInstall(directory: string): string | undefined;
