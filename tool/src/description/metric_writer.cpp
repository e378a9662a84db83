#include "description/metric_writer.hpp"

#include "cli/text.hpp"

#include <stela/framework/codec/detail/json_writer.hpp>

#include <algorithm>
#include <utility>

namespace stela::tool {

std::string label_text(std::string_view name, std::string_view value) {
  std::string text{name};
  text += "=\"";
  for (const char c : in_one_line(value)) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text += '"';
}

MetricWriter& MetricWriter::begin(std::string_view name, std::string_view type,
                                  std::string_view help) {
  const auto known = std::find_if(families_.begin(), families_.end(),
                                  [&](const Family& family) { return family.name == name; });
  current_ = static_cast<std::size_t>(known - families_.begin());
  if (known != families_.end()) return *this;
  Family& family = families_.emplace_back(Family{.name = std::string{name}, .text = {}});
  family.text.append("# HELP ").append(name).append(" ").append(help).append("\n");
  family.text.append("# TYPE ").append(name).append(" ").append(type).append("\n");
  return *this;
}

MetricWriter& MetricWriter::label_all(std::string labels) {
  common_ = std::move(labels);
  return *this;
}

std::string MetricWriter::text() && {
  std::string text;
  for (const Family& family : families_) text += family.text;
  return text;
}

MetricWriter& MetricWriter::value(double number, std::string_view labels) {
  line({}, labels, number);
  return *this;
}

MetricWriter& MetricWriter::histogram(const Histogram& histogram, std::string_view labels) {
  std::string before{labels};
  if (!before.empty()) before += ',';
  for (std::size_t i = 0; i < Histogram::bounds.size(); ++i) {
    std::string bound;
    json::append_double(bound, Histogram::bounds[i]);
    line("_bucket", before + label_text("le", bound), static_cast<double>(histogram.up_to(i)));
  }
  line("_bucket", before + label_text("le", "+Inf"), static_cast<double>(histogram.count()));
  line("_sum", labels, histogram.sum());
  line("_count", labels, static_cast<double>(histogram.count()));
  return *this;
}

void MetricWriter::line(std::string_view suffix, std::string_view labels, double number) {
  const std::string& name = families_[current_].name;
  std::string& out = families_[current_].text;
  out.append(name).append(suffix);
  if (!labels.empty() || !common_.empty()) {
    const std::string_view comma = labels.empty() || common_.empty() ? "" : ",";
    out.append("{").append(common_).append(comma).append(labels).append("}");
  }
  out += ' ';
  json::append_double(out, number);
  out += '\n';
}

}  // namespace stela::tool
