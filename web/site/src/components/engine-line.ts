// Which build of the engine runs the views, and why not a better one.
import { html, nothing, type TemplateResult } from 'lit';
import { lesson } from '../lesson.js';
import { LessonElement } from './light-element.js';

export class EngineLine extends LessonElement {
  protected override render(): TemplateResult {
    const { info } = lesson;
    if (!info) return html`${lesson.failure ?? 'The engine is on its way …'}`;
    return html`The views run on qkv ${info.version}, build “${info.variant}”, ${info.threads} ${info.threads === 1 ? 'thread' : 'threads'}${info.reason ? html` (${info.reason})` : nothing};
      this page is ${crossOriginIsolated ? '' : 'not '}cross-origin isolated.`;
  }
}
