'use strict';
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);
  const form = byId('filter'), rankBox = byId('fr'), textBox = byId('fq'), count = byId('fc'), tip = byId('tip');
  form.hidden = false;

  const spans = (text) => text.split(',').map((part) => part.trim().match(/^(\d+)(?:\s*-\s*(\d+))?$/)).filter(Boolean)
    .map((m) => [Number(m[1]), Number(m[2] ?? m[1])]);
  const rows = all('tr[id^=r]').map((row) => ({ rank: Number(row.dataset.r), host: (row.cells[1]?.textContent ?? '').toLowerCase() }));
  const ranked = all('[data-r]').map((element) => ({ element, spans: spans(element.dataset.r) }));
  const texts = all('[data-q]').map((element) => ({ element, text: null }));

  // Numbers are ranks, anything else is a part of a host's name.
  const wanted = (text) => {
    const parts = text.split(',').map((p) => p.trim().toLowerCase()).filter(Boolean);
    if (!parts.length) return null;
    return parts.flatMap((part) => {
      const numbers = spans(part);
      return numbers.length ? numbers : rows.filter((row) => row.host.includes(part)).map((row) => [row.rank, row.rank]);
    });
  };
  const meets = (a, b) => a.some(([from, to]) => b.some(([first, last]) => from <= last && first <= to));

  const apply = (remember) => {
    const ranks = wanted(rankBox.value), words = textBox.value.trim().toLowerCase();
    for (const { element, spans: own } of ranked) element.classList.toggle('off', ranks !== null && !meets(own, ranks));
    for (const item of texts) {
      if (words) item.text ??= item.element.textContent.toLowerCase();
      const hit = !words || item.text.includes(words);
      // One that also carries ranks was decided above; text can only hide more.
      if (!hit) item.element.classList.add('off');
      else if (!item.element.hasAttribute('data-r')) item.element.classList.remove('off');
    }
    const shown = rows.filter((row) => !byId('r' + row.rank).classList.contains('off')).length;
    const active = ranks !== null || words !== '';
    count.textContent = active ? `${shown} of ${rows.length} ranks` : '';
    if (active) for (const details of all('#ranks details')) details.open = true;
    if (remember) history.replaceState(null, '', active ? '#' + new URLSearchParams({ r: rankBox.value, q: textBox.value }) : location.pathname);
  };
  const recall = () => {
    const state = new URLSearchParams(location.hash.slice(1));
    if (!state.has('r') && !state.has('q')) return;
    rankBox.value = state.get('r') ?? '';
    textBox.value = state.get('q') ?? '';
    apply(false);
  };
  form.addEventListener('input', () => apply(true));
  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('reset', () => setTimeout(() => apply(true)));
  addEventListener('hashchange', recall);
  addEventListener('beforeprint', () => all('details').forEach((details) => { details.open = true; }));
  recall();

  const squares = byId('squares');
  if (squares) {
    const { columns, cell, count: total } = squares.dataset;
    const under = (event) => {
      const box = squares.querySelector('svg').getBoundingClientRect();
      const scale = box.width / (columns * cell + 1);
      const x = Math.floor((event.clientX - box.left) / (cell * scale)), y = Math.floor((event.clientY - box.top) / (cell * scale));
      const index = y * columns + x;
      return x >= 0 && x < columns && index >= 0 && index < total ? rows[index] : undefined;
    };
    squares.addEventListener('mousemove', (event) => {
      const row = under(event);
      tip.hidden = !row;
      if (!row) return;
      const cells = byId('r' + row.rank).cells;
      tip.textContent = `rank ${row.rank} · ${cells[1].textContent}${cells[4] ? ' · ' + cells[4].textContent : ''}`;
      tip.style.left = Math.min(event.clientX + 12, innerWidth - 280) + 'px';
      tip.style.top = event.clientY + 14 + 'px';
    });
    squares.addEventListener('mouseleave', () => { tip.hidden = true; });
    squares.addEventListener('click', (event) => {
      const row = under(event);
      if (!row) return;
      rankBox.value = String(row.rank);
      apply(true);
    });
  }
})();
