// Labelled native controls, as templates.
import { html, type TemplateResult } from 'lit';

/** Each choice with its label; `value` is the chosen one. */
interface ChoiceOptions<Value> {
  label: string;
  name: string;
  choices: readonly (readonly [Value, string | TemplateResult])[];
  value: Value;
  onChoose: (value: Value) => void;
}

/** A row of radio buttons. */
export const segments = <Value extends string>({ label, name, choices, value, onChoose }: ChoiceOptions<Value>): TemplateResult => html`
  <fieldset class="control">
    <legend class="control-title">${label}</legend>
    <div class="segments">
      ${choices.map(([choice, text]) => html`
        <label><input type="radio" name=${name} value=${choice} .checked=${choice === value} @change=${() => onChoose(choice)}>${text}</label>`)}
    </div>
  </fieldset>`;

export const select = <Value extends string | number>({ label, name, choices, value, onChoose }: ChoiceOptions<Value>): TemplateResult => html`
  <label class="control"><span>${label}</span>
    <select name=${name} @change=${(event: Event) => onChoose(choices[(event.target as HTMLSelectElement).selectedIndex]![0])}>
      ${choices.map(([choice, text]) => html`<option value=${choice} .selected=${choice === value}>${text}</option>`)}
    </select>
  </label>`;

export const checkbox = (label: string, checked: boolean, onChange: (checked: boolean) => void): TemplateResult => html`
  <label class="check"><input type="checkbox" .checked=${checked} @change=${(event: Event) => onChange((event.target as HTMLInputElement).checked)}>${label}</label>`;

interface NumberOptions {
  label: string;
  value: number;
  min: number;
  max: number;
  step: number;
  onInput: (value: number) => void;
}

export const slider = ({ label, value, min, max, step, onInput }: NumberOptions): TemplateResult => html`
  <label class="control"><span>${label}: <b>${value}</b></span>
    <input type="range" min=${min} max=${max} step=${step} .value=${String(value)}
      @input=${(event: Event) => onInput((event.target as HTMLInputElement).valueAsNumber)}>
  </label>`;

/** A number field; what is out of range changes nothing. */
export const numberField = ({ label, value, min, max, step, onInput }: NumberOptions): TemplateResult => html`
  <label class="control"><span>${label}</span>
    <input type="number" min=${min} max=${max} step=${step} .value=${String(value)} @change=${(event: Event) => {
      const input = event.target as HTMLInputElement;
      if (input.validity.valid && input.value !== '') onInput(input.valueAsNumber);
      else input.value = String(value);
    }}>
  </label>`;
