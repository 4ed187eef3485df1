/** Work that many events ask for: done soon, once, and never twice at the same time. Knows no editor. */
export class Pace {
  private timer: NodeJS.Timeout | undefined;
  private isRunning = false;
  private isAsked = false;

  constructor(
    private readonly work: () => Promise<void>,
    private readonly delayMs: number,
  ) {}

  touch(): void {
    this.isAsked = true;
    if (!this.isRunning && !this.timer) {
      this.timer = setTimeout(() => void this.run(), this.delayMs);
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.isAsked = false;
    this.timer = undefined;
  }

  private async run(): Promise<void> {
    this.timer = undefined;
    this.isAsked = false;
    this.isRunning = true;
    try {
      await this.work();
    } finally {
      this.isRunning = false;
      if (this.isAsked) {
        this.touch();
      }
    }
  }
}
