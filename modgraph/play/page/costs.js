// A table of what each node costs, sorted by a column; with a pinned state, what has changed since.

const { element } = globalThis;
const COLUMNS = { parameters: "parameters", trainable: "trainable", macs: "MACs", active_macs: "active MACs" };
const LIKE = { trainable: "parameters", active_macs: "macs" }; // columns that are left out where they equal others
const MOST = 400; // rows

export class CostTable {
  constructor(place) {
    Object.assign(this, { place, table: element("div", { class: "scroll" }), column: "name", descends: false });
    place.append(this.table);
  }
  // The costs, and those of the pinned state if there is one.
  draw(costs, pinned = null) {
    Object.assign(this, { costs, pinned });
    const names = new Set([...Object.keys(costs.nodes), ...Object.keys(pinned?.nodes ?? {})]);
    this.rows = [...names].map((name) => ({ name, now: own(costs.nodes, name), then: pinned && own(pinned.nodes, name) })).filter(({ now, then }) => [now, then].some((each) => each && (each.parameters || each.macs)));
    const every = [costs, pinned, ...this.rows.flatMap(({ now, then }) => [now, then])].filter(Boolean);
    this.columns = Object.keys(COLUMNS).filter((column) => !LIKE[column] || every.some((each) => each[column] !== each[LIKE[column]]));
    this.show();
  }
  show() {
    const value = ({ name, now }) => (this.column === "name" ? name : now?.[this.column] ?? -1);
    const compare = (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (this.descends ? -1 : 1);
    const rows = this.column === "name" && !this.descends ? this.rows : [...this.rows].sort(compare);
    const whole = { name: "the model", now: this.costs, then: this.pinned };
    const header = ["name", ...this.columns].map((each) => this.header(each));
    this.table.replaceChildren(element("table", { class: "costs" },
      element("thead", {}, element("tr", {}, header)), element("tbody", {}, this.row(whole, "whole"), rows.slice(0, MOST).map((row) => this.row(row)))),
      rows.length > MOST ? element("p", { class: "muted" }, `and ${rows.length - MOST} more`) : "");
  }
  header(column) {
    const sorted = this.column === column ? (this.descends ? "descending" : "ascending") : undefined;
    const sort = () => {
      Object.assign(this, { descends: this.column === column ? !this.descends : column !== "name", column });
      this.show();
      this.table.querySelector("[aria-sort] button").focus();
    };
    return element("th", { scope: "col", class: column === "name" ? "" : "numeric", "aria-sort": sorted }, element("button", { type: "button", onclick: sort }, COLUMNS[column] ?? "node"));
  }
  row({ name, now, then }, kind = "") {
    const state = this.pinned && (!then ? "added" : !now ? "removed" : "");
    const cells = this.columns.map((column) => element("td", { class: "numeric" }, now ? now[column].toLocaleString("en") : "", this.pinned ? difference(now?.[column] ?? 0, then?.[column] ?? 0) : ""));
    const depth = kind || this.column !== "name" ? 0 : name.split(".").length - 1;
    return element("tr", { class: `${kind} ${state || ""}`.trim() || undefined }, element("th", { scope: "row", class: `depth-${Math.min(depth, 6)}` }, depth ? name.slice(name.lastIndexOf(".") + 1) : name), cells);
  }
}

const own = (record, name) => (Object.hasOwn(record, name) ? record[name] : null);

function difference(now, then) {
  if (now === then) return "";
  return element("span", { class: now > then ? "more" : "less" }, ` ${now > then ? "+" : "−"}${Math.abs(now - then).toLocaleString("en")}`);
}
