// Describes a structure once. Tables, sheets, JSON and metrics are made from its fields.
//
//     constexpr Field<Gap> gap_fields[] = {
//         field<&Gap::number>("gap"),
//         field<&Gap::missing>("missing", {.title = "missing up to"}),
//     };
//     constexpr Description<Gap> gap{gap_fields, {.table = "gap missing"}};
//
//     print_list(out, gap, inbox.gaps());
#pragma once

#include "cli/output.hpp"
#include "description/metric.hpp"
#include "description/metric_writer.hpp"
#include "description/value.hpp"

#include <stela/framework/numbers.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace stela::tool {

/// How to show a field, where its name and type don't tell.
struct Look {
  /// The title for people, instead of the name: "missing up to".
  std::string_view title = {};
  std::optional<Kind> kind = {};
  /// The greatest width of its column; longer values get a line of their own. 0: no limit.
  std::size_t most = 0;
  /// The text for people if the value is missing or empty.
  std::string_view absent = {};
  /// Shown to people only. JSON has the fields that it is made from.
  bool is_text_only = false;
  Metric metric = {};
};

/// JSON uses one vocabulary: durations end in _s, moments are "at" or end in _at, and errors, their
/// causes and each kind of version have one word.
constexpr bool is_in_vocabulary(std::string_view name, Kind kind) {
  for (const char c : name) {
    if (c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9')) return false;
  }
  for (const std::string_view other :
       {"version", "last_error", "correlation", "causation", "finding", "advice", "ts"}) {
    if (name == other) return false;
  }
  for (const std::string_view ending : {"since", "until", "_ms"}) {
    if (name.ends_with(ending)) return false;
  }
  return name.ends_with("_s") == (kind == Kind::duration) &&
         (name == "at" || name.ends_with("_at")) == (kind == Kind::time);
}

/// A field, independent of its structure.
struct FieldFacts {
  /// Its key in JSON.
  std::string_view name;
  Kind kind = Kind::text;
  Look look = {};

  /// "missing up to".
  std::string title() const;
};

template <class T>
struct Field : FieldFacts {
  Value (*read)(const T&);
};

/// Makes a field of the structure that its array describes. `get` is a pointer to a member, a
/// method, or a function that takes the structure.
template <auto get>
struct FieldBy {
  std::string_view name;
  Look look;

  template <class T>
  constexpr operator Field<T>() const {
    using Result = std::remove_cvref_t<std::invoke_result_t<decltype(get), const T&>>;
    return {{name, look.kind.value_or(natural_kind<Result>()), look},
            [](const T& item) -> Value { return std::invoke(get, item); }};
  }
};
template <auto get>
constexpr FieldBy<get> field(std::string_view name, const Look& look = {}) {
  return {name, look};
}

/// Names of fields, separated by blanks. JSON has every field, in the order of the array.
struct Orders {
  std::string_view table = {};
  std::string_view sheet = {};
  /// Empty: every field that has a metric.
  std::string_view metrics = {};
};

/// Threads: any number may read.
template <class T>
class Description {
 public:
  /// Unknown names in `orders`, and names outside the JSON vocabulary, are compile errors.
  template <std::size_t count>
  constexpr Description(const Field<T> (&fields)[count], const Orders& orders = {})
      : fields_{fields}, orders_{orders} {
    for (const std::string_view names : {orders.table, orders.sheet, orders.metrics}) {
      for_each(names, [](const Field<T>&) {});
    }
    for (const Field<T>& field : fields_) {
      if (!field.look.is_text_only && !is_in_vocabulary(field.name, field.kind)) {
        throw std::logic_error{"JSON has another word for it"};
      }
    }
  }

  constexpr std::span<const Field<T>> fields() const noexcept { return fields_; }
  constexpr const Orders& orders() const noexcept { return orders_; }

  /// Calls `take` for each field named in `names`.
  template <class Take>
  constexpr void for_each(std::string_view names, Take take) const {
    while (!names.empty()) {
      const std::size_t blank = std::min(names.find(' '), names.size());
      take(find(names.substr(0, blank)));
      names.remove_prefix(std::min(blank + 1, names.size()));
    }
  }

  /// Calls `take` for the fields that have a metric.
  template <class Take>
  constexpr void for_each_measured(Take take) const {
    if (!orders_.metrics.empty()) return for_each(orders_.metrics, take);
    for (const Field<T>& field : fields_) {
      if (!field.look.metric.name.empty()) take(field);
    }
  }

 private:
  constexpr const Field<T>& find(std::string_view name) const {
    for (const Field<T>& field : fields_) {
      if (field.name == name) return field;
    }
    throw std::logic_error{"there is no such field"};
  }

  std::span<const Field<T>> fields_;
  Orders orders_;
};

/// Empty for a zero or an empty text.
template <class T>
std::optional<T> unless_empty(T value) {
  return value == T{} ? std::nullopt : std::optional{std::move(value)};
}

/// A value without a structure: {"dry_run", true}.
struct NamedValue {
  std::string_view name;
  Value value;
};
using NamedValues = std::initializer_list<NamedValue>;

/// The text of a value in a table, with times to the second; on a sheet, times are in full.
std::string in_cell(const FieldFacts& field, const Value& value);
std::string on_sheet(const FieldFacts& field, const Value& value);
Table::Column column_of(const FieldFacts& field);

/// Writes a JSON object, field by field. Missing and empty values are null. Threads: one at a time.
class JsonFields {
 public:
  explicit JsonFields(std::string& out) : out_{out} { out_ += '{'; }
  void add(const FieldFacts& field, const Value& value);
  void add(NamedValues values);
  void close() { out_ += '}'; }

 private:
  void key(std::string_view name);

  std::string& out_;
  bool is_empty_ = true;
};

std::string to_json(NamedValues values);

/// The position and time of a report: {"sequence": the last event that it can know of, "at": when}.
/// Without a sequence, the database didn't answer.
Json as_of(std::optional<GlobalSequence> last, Timestamp at);

template <class T>
std::string to_json(const Description<T>& description, const T& item, NamedValues more = {}) {
  std::string out;
  JsonFields object{out};
  for (const Field<T>& field : description.fields()) {
    if (!field.look.is_text_only) object.add(field, field.read(item));
  }
  object.add(more);
  object.close();
  return out;
}

/// A JSON list; `json_of` writes an item.
template <class Items, class JsonOf>
Json json_list(const Items& items, JsonOf json_of) {
  Json list{"["};
  for (const auto& item : items) {
    if (list.text.size() > 1) list.text += ',';
    list.text += json_of(item);
  }
  list.text += ']';
  return list;
}
template <class T, class Items>
Json json_list(const Description<T>& description, const Items& items) {
  return json_list(items, [&](const T& item) { return to_json(description, item); });
}

template <class T>
std::vector<Table::Column> columns_of(const Description<T>& description) {
  std::vector<Table::Column> columns;
  description.for_each(description.orders().table,
                       [&](const Field<T>& field) { columns.push_back(column_of(field)); });
  return columns;
}

template <class T>
std::vector<std::string> cells_of(const Description<T>& description, const T& item) {
  std::vector<std::string> cells;
  description.for_each(description.orders().table, [&](const Field<T>& field) {
    cells.push_back(in_cell(field, field.read(item)));
  });
  return cells;
}

/// Prints items as they come: with --json, each as a line; otherwise as a table, whose columns are
/// as wide as its first rows need. Threads: one at a time.
template <class T>
class Listing {
 public:
  Listing(Output& out, const Description<T>& description)
      : out_{out}, description_{description}, table_{columns_of(description)} {}

  void add(const T& item) {
    if (out_.is_json()) return out_.json(to_json(description_, item));
    table_.add(cells_of(description_, item));
    if (table_.is_full()) table_.print(out_);
  }
  /// Prints the rest of the table, unless items were printed as JSON.
  void print() {
    if (!out_.is_json()) table_.print(out_);
  }

 private:
  Output& out_;
  const Description<T>& description_;
  Table table_;
};

template <class T, class Items>
void print_list(Output& out, const Description<T>& description, const Items& items) {
  Listing<T> listing{out, description};
  for (const T& item : items) listing.add(item);
  listing.print();
}

/// Titles and values below each other. Empty values are left out.
template <class T>
Sheet sheet_of(const Description<T>& description, const T& item) {
  Sheet sheet;
  description.for_each(description.orders().sheet, [&](const Field<T>& field) {
    const std::string text = on_sheet(field, field.read(item));
    if (!text.empty()) sheet.add(field.title(), text);
  });
  return sheet;
}

/// Prints a result: `values` with --json, otherwise `text`.
void print_result(Output& out, NamedValues values, std::string_view text);
template <class T>
void print_json(Output& out, const Description<T>& description, const T& item,
                NamedValues more = {}) {
  out.json(to_json(description, item, more));
}

/// Writes the metrics of one structure.
template <class T>
void write_metrics(MetricWriter& out, const Description<T>& description, const T& item) {
  std::string_view before;
  description.for_each_measured([&](const Field<T>& field) {
    const Metric& metric = field.look.metric;
    if (metric.name != before) out.begin(metric.name, metric.type, metric.help);
    before = metric.name;
    const bool has_label = !metric.label.empty();
    out.value(field.read(item).as_number(),
              has_label ? label_text(metric.label, metric.label_value) : std::string{});
  });
}

/// Writes the metrics of several structures. The first field is their label: partition="p00".
template <class T, class Items>
void write_metrics_of_each(MetricWriter& out, const Description<T>& description,
                           const Items& items) {
  const Field<T>& name = description.fields().front();
  description.for_each_measured([&](const Field<T>& field) {
    const Metric& metric = field.look.metric;
    out.begin(metric.name, metric.type, metric.help);
    for (const T& item : items) {
      out.value(field.read(item).as_number(),
                label_text(name.name, in_cell(name, name.read(item))));
    }
  });
}

}  // namespace stela::tool
