#include "support/prometheus_text.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>
#include <set>
#include <sstream>

namespace stela::test {
namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

double number_in(const std::string& text) {
  if (text == "+Inf") return std::numeric_limits<double>::infinity();
  return std::stod(text);
}

/// One parsed sample.
struct Sample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;

  std::string key() const {
    std::string text = name;
    for (const auto& [label, value_text] : labels)
      text.append("|").append(label + "=" + value_text);
    return text;
  }
  /// Identifies the histogram of its family: its labels without `le`.
  std::string series() const {
    std::string text;
    for (const auto& [label, value_text] : labels) {
      if (label != "le") text.append("|").append(label + "=" + value_text);
    }
    return text;
  }
};

class Checker {
 public:
  std::vector<std::string> check(const std::string& text) {
    if (text.empty() || text.back() != '\n') complain("the last line doesn't end");
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);) {
      line_ = line;
      take(line);
    }
    end_family();
    return std::move(problems_);
  }

 private:
  void complain(const std::string& what) { problems_.push_back(line_ + ": " + what); }

  void take(const std::string& line) {
    static const std::regex comment{"# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)"};
    std::smatch part;
    if (line.empty()) return complain("an empty line");
    if (line[0] != '#') return take_sample(line);
    if (!std::regex_match(line, part, comment)) return complain("neither HELP nor TYPE");
    if (part[1] == "HELP") return begin_family(part[2], part[3]);
    if (part[2] != family_ || !type_.empty()) return complain("TYPE without its HELP before it");
    type_ = part[3];
    if (type_ != "counter" && type_ != "gauge" && type_ != "histogram") complain("no such type");
    check_name();
  }

  void begin_family(const std::string& name, const std::string& help) {
    end_family();
    family_ = name;
    type_.clear();
    if (!families_.insert(name).second) complain("it has been there before");
    if (help.empty()) complain("no help");
  }

  /// The rules of promtool's lint.
  void check_name() {
    static const std::regex lower{"[a-z][a-z0-9_]*"};
    if (!std::regex_match(family_, lower)) complain("a name is in lower case with underscores");
    if (ends_with(family_, "_total") != (type_ == "counter")) {
      complain("counters end with _total, and nothing else does");
    }
    for (const char* reserved : {"_bucket", "_sum", "_count"}) {
      if (ends_with(family_, reserved)) complain("a name of a histogram's parts");
    }
    std::istringstream words{family_};
    for (std::string word; std::getline(words, word, '_');) {
      static const std::set<std::string> wrong{
          "counter",      "gauge",        "histogram", "ms",        "us",     "ns", "s",
          "milliseconds", "microseconds", "minutes",   "hours",     "days",   "kb", "mb",
          "kib",          "mib",          "kilobytes", "megabytes", "percent"};
      if (wrong.contains(word)) complain("'" + word + "' in a name");
    }
  }

  void take_sample(const std::string& line) {
    static const std::regex shape{
        "([a-zA-Z_:][a-zA-Z0-9_:]*)(\\{(.*)\\})? ([+-]?Inf|NaN|[+-]?[0-9.]+([eE][+-]?[0-9]+)?)"};
    std::smatch part;
    if (!std::regex_match(line, part, shape)) return complain("no sample");
    Sample sample{.name = part[1], .labels = {}, .value = number_in(part[4])};
    if (!read_labels(part[3], sample)) return complain("its labels can't be read");
    if (!seen_.insert(sample.key()).second) complain("it has been there before");
    if (type_ == "histogram") return take_part(sample);
    if (sample.name != family_ || type_.empty()) return complain("without its TYPE before it");
    if (sample.labels.contains("le")) complain("le is for histograms");
    if (type_ == "counter" && !(sample.value >= 0)) complain("a counter is 0 or more");
  }

  static bool read_labels(std::string text, Sample& sample) {
    static const std::regex first{
        "([a-zA-Z_][a-zA-Z0-9_]*)=\"(([^\"\\\\\n]|\\\\[\\\\\"n])*)\"(,|$)"};
    std::smatch part;
    while (!text.empty()) {
      if (!std::regex_search(text, part, first, std::regex_constants::match_continuous))
        return false;
      const std::string name = part[1];
      if (name.substr(0, 2) == "__" || !sample.labels.emplace(name, part[2]).second) return false;
      text = part.suffix();
    }
    return true;
  }

  void take_part(const Sample& sample) {
    const std::string suffix =
        sample.name.size() > family_.size() ? sample.name.substr(family_.size()) : "";
    if (sample.name.substr(0, family_.size()) != family_) return complain("of another metric");
    Parts& parts = histograms_[sample.series()];
    if (suffix == "_sum") {
      parts.has_sum = true;
    } else if (suffix == "_count") {
      parts.count = sample.value;
    } else if (suffix == "_bucket" && sample.labels.contains("le")) {
      const double bound = number_in(sample.labels.at("le"));
      if (bound <= parts.last_bound) complain("bounds grow");
      if (sample.value < parts.last_value) complain("buckets add up");
      parts.last_bound = bound;
      parts.last_value = sample.value;
    } else {
      complain("no part of a histogram");
    }
  }

  void end_family() {
    for (const auto& [series, parts] : histograms_) {
      if (!parts.has_sum || !std::isinf(parts.last_bound) || parts.count != parts.last_value) {
        complain("the histogram " + family_ + series + " before it isn't whole");
      }
    }
    histograms_.clear();
  }

  struct Parts {
    double last_bound = -std::numeric_limits<double>::infinity();
    double last_value = 0;
    double count = -1;
    bool has_sum = false;
  };

  std::string line_;
  std::string family_;
  std::string type_;
  std::set<std::string> families_;
  std::set<std::string> seen_;
  std::map<std::string, Parts> histograms_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> problems_in_metrics(const std::string& text) {
  return Checker{}.check(text);
}

std::map<std::string, std::string> metric_types_in(const std::string& text) {
  std::map<std::string, std::string> types;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    static const std::regex type{"# TYPE ([a-zA-Z0-9_:]+) ([a-z]+)"};
    std::smatch part;
    if (std::regex_match(line, part, type)) types[part[1]] = part[2];
  }
  return types;
}

}  // namespace stela::test
