#include "worker/metric_writer.hpp"

#include "cli/text.hpp"

#include <stela/framework/codec/json_writer.hpp>

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
  name_ = name;
  out_.append("# HELP ").append(name).append(" ").append(help).append("\n");
  out_.append("# TYPE ").append(name).append(" ").append(type).append("\n");
  return *this;
}

MetricWriter& MetricWriter::value(double number, Labels labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    if (!text.empty()) text += ',';
    text += label_text(name, value);
  }
  return labelled(number, text);
}

MetricWriter& MetricWriter::labelled(double number, std::string_view labels) {
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
  out_.append(name_).append(suffix);
  if (!labels.empty()) out_.append("{").append(labels).append("}");
  out_ += ' ';
  json::append_double(out_, number);
  out_ += '\n';
}

}  // namespace stela::tool
