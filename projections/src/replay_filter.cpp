#include "replay_filter.hpp"

#include <stela/framework/codec/detail/json_writer.hpp>

#include <vector>

namespace stela::projections {
namespace {

std::string json_array(const std::vector<std::string>& texts) {
  if (texts.empty()) return {};
  std::string array = "[";
  for (const std::string& text : texts) {
    if (array.size() > 1) array += ',';
    json::append_string(array, text);
  }
  return array + ']';
}

}  // namespace

FilterValues::FilterValues(const ReplayFilter& filter)
    : streams{json_array(filter.streams)},
      categories{json_array(filter.categories)},
      types{json_array(filter.event_types)},
      since{filter.since.value_or(Timestamp::min())},
      until{filter.until.value_or(Timestamp::max())} {}

std::string describe(const ReplayFilter& filter) {
  if (filter.is_empty()) return {};
  const FilterValues values{filter};
  std::string text;
  const auto add = [&](std::string_view name, const std::string& value) {
    if (value.empty()) return;
    text.append(text.empty() ? "" : " ").append(name).append("=").append(value);
  };
  add("streams", values.streams);
  add("categories", values.categories);
  add("types", values.types);
  if (filter.from > GlobalSequence{1}) add("from", std::to_string(filter.from.value()));
  if (filter.to < GlobalSequence::max()) add("to", std::to_string(filter.to.value()));
  if (filter.since) add("since", to_string(*filter.since));
  if (filter.until) add("until", to_string(*filter.until));
  return text;
}

}  // namespace stela::projections
