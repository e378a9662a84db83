#include "description/description.hpp"

#include "cli/text.hpp"
#include "event_text.hpp"

#include <stela/framework/codec/detail/json_writer.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <variant>

namespace stela::tool {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

std::string in_words_of(Kind kind, std::int64_t number) {
  if (kind == Kind::count) return in_digits(number);
  return kind == Kind::bytes ? in_bytes(number) : std::to_string(number);
}

/// Empty for a missing value.
std::string plain_text(const FieldFacts& field, const Value& value) {
  return std::visit(
      Overloaded{[](std::monostate) { return std::string{}; },
                 [](bool flag) { return std::string{flag ? "yes" : "no"}; },
                 [&](std::int64_t number) { return in_words_of(field.kind, number); },
                 [](double number) {
                   std::array<char, 32> text{};
                   std::snprintf(text.data(), text.size(), "%.2f", number);
                   return std::string{text.data()};
                 },
                 [](const std::string& text) { return text; },
                 [](Timestamp time) { return to_string(time); },
                 [](std::chrono::microseconds duration) { return in_words(duration); },
                 [](const Json& json) { return json.text; }},
      value.data());
}

void append_text(std::string& out, Kind kind, std::string text) {
  if (text.empty()) {
    out += "null";
    return;
  }
  if (kind == Kind::untrusted) text = in_one_line(text);
  if (kind == Kind::word) std::replace(text.begin(), text.end(), ' ', '_');
  json::append_string(out, text);
}

void append_json(std::string& out, Kind kind, const Value& value) {
  const auto append_duration = [&](std::chrono::microseconds duration) {
    json::append_double(out, static_cast<double>(duration.count()) / 1e6);
  };
  std::visit(Overloaded{[&](std::monostate) { out += "null"; },
                        [&](bool flag) { json::append_bool(out, flag); },
                        [&](std::int64_t number) { json::append_integer(out, number); },
                        [&](double number) { json::append_double(out, number); },
                        [&](const std::string& text) { append_text(out, kind, text); },
                        [&](Timestamp time) { json::append_string(out, to_string(time)); },
                        append_duration, [&](const Json& json) { out += json.text; }},
             value.data());
}

bool is_number(Kind kind) {
  switch (kind) {
    case Kind::number:
    case Kind::count:
    case Kind::bytes:
    case Kind::real:
    case Kind::duration:
      return true;
    case Kind::text:
    case Kind::word:
    case Kind::untrusted:
    case Kind::flag:
    case Kind::time:
    case Kind::json:
      return false;
  }
  return false;
}

}  // namespace

double Value::as_number() const noexcept {
  return std::visit(Overloaded{[](bool flag) { return flag ? 1.0 : 0.0; },
                               [](std::int64_t number) { return static_cast<double>(number); },
                               [](double number) { return number; },
                               [](std::chrono::microseconds duration) {
                                 return static_cast<double>(duration.count()) / 1e6;
                               },
                               [](const auto&) { return 0.0; }},
                    data_);
}

std::string FieldFacts::title() const {
  std::string title{look.title.empty() ? name : look.title};
  std::replace(title.begin(), title.end(), '_', ' ');
  return title;
}

std::string on_sheet(const FieldFacts& field, const Value& value) {
  std::string text = plain_text(field, value);
  return text.empty() ? std::string{field.look.absent} : text;
}

std::string in_cell(const FieldFacts& field, const Value& value) {
  const auto* const time = std::get_if<Timestamp>(&value.data());
  return time != nullptr ? short_time(*time) : on_sheet(field, value);
}

Table::Column column_of(const FieldFacts& field) {
  std::string title = field.title();
  for (char& c : title) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return {.title = std::move(title),
          .align = is_number(field.kind) ? Table::Align::right : Table::Align::left,
          .most = field.look.most};
}

void JsonFields::key(std::string_view name) {
  if (!is_empty_) out_ += ',';
  is_empty_ = false;
  json::append_string(out_, name);
  out_ += ':';
}

void JsonFields::add(const FieldFacts& field, const Value& value) {
  key(field.name);
  append_json(out_, field.kind, value);
}

void JsonFields::add(NamedValues values) {
  for (const NamedValue& each : values) {
    key(each.name);
    append_json(out_, Kind::text, each.value);
  }
}

std::string to_json(NamedValues values) {
  std::string out;
  JsonFields object{out};
  object.add(values);
  object.close();
  return out;
}

Json as_of(std::optional<GlobalSequence> last, Timestamp at) {
  return {to_json({{"sequence", last}, {"at", at}})};
}

void print_result(Output& out, NamedValues values, std::string_view text) {
  if (out.is_json()) {
    out.json(to_json(values));
  } else {
    out.line(text);
  }
}

}  // namespace stela::tool
