#include "support/random_history.hpp"

#include <array>
#include <set>

namespace stela::test {
namespace {

constexpr std::array texts{"",
                           "jane",
                           "zoë",
                           "日本語",
                           "\U0001f600 smile",
                           "a \"quoted\" word",
                           "back\\slash",
                           "</script>",
                           "\u2028line\u2029",
                           "tab and more"};

}  // namespace

std::string RandomHistory::stream() {
  constexpr std::array categories{"order", "stock_item", "c", "customer2"};
  const std::string category = categories[static_cast<std::size_t>(up_to(3))];
  switch (up_to(9)) {
    case 0:
      return category + "-ключ/" + std::to_string(up_to(5));
    case 1:
      return category + "-" + std::string(190, static_cast<char>('a' + up_to(3)));
    case 2:
      return category + "-jane@example.com#\"'" + std::to_string(up_to(3));
    default:
      return category + "-" + std::to_string(up_to(30));
  }
}

std::string RandomHistory::text() {
  return texts[static_cast<std::size_t>(up_to(static_cast<int>(texts.size()) - 1))];
}

std::string RandomHistory::payload() {
  std::string bytes;
  switch (up_to(11)) {
    case 0:
      return {};
    case 1:
      return "{\n  \"pretty\": true\n}\n";
    case 2:
      for (int i = up_to(64); i > 0; --i) bytes += static_cast<char>(up_to(255));
      return bytes;
    case 3:
      return R"({"largest":9223372036854775807,"smallest":-9223372036854775808,"e":1.50e+3})";
    case 4:
      return one_in(2) ? "null" : "[1,{\"a\":[]},\"\\u00e9\"]";
    case 5:
      return " {\"padded\":1} ";
    case 6:
      return std::string(static_cast<std::size_t>(up_to(12'000)), '\x7f');
    case 7:
      return R"({"beyond":123456789012345678901234567890})";
    default:
      break;
  }
  json::ObjectWriter object{bytes};
  object.add("text", text()).add("number", up_to(1'000'000)).close();
  return bytes;
}

Context RandomHistory::context() {
  Context context;
  if (one_in(3)) context.correlation_id = "request-" + std::to_string(up_to(50));
  if (one_in(4)) {
    Uuid::Bytes bytes;
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(up_to(255));
    context.causation_id = EventId{bytes};
  }
  if (one_in(3)) context.actor = text();
  if (one_in(5)) context.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  if (one_in(5)) context.tracestate = "vendor=1";
  if (one_in(4)) context.headers = {{"tenant", text()}, {"x-note", text()}};
  return context;
}

void RandomHistory::append(EventStore& store) {
  std::set<std::string> names;
  for (int i = one_in(5) ? 3 : 1; i > 0; --i) names.insert(stream());
  std::vector<StreamId> ids;
  for (const std::string& name : names) ids.push_back(StreamId::parse(name));

  std::vector<std::vector<std::string>> payloads;
  std::vector<std::vector<std::string>> types;
  std::vector<std::vector<NewEvent>> events(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::size_t count = one_in(10) ? 0 : 1 + static_cast<std::size_t>(up_to(4));
    payloads.emplace_back();
    types.emplace_back();
    for (std::size_t n = 0; n < count; ++n) {
      payloads.back().push_back(payload());
      types.back().push_back("thing.happened_" + std::to_string(up_to(6)));
    }
    for (std::size_t n = 0; n < count; ++n) {
      events[i].push_back({types[i][n], 1 + up_to(2), one_in(2), payloads[i][n]});
    }
  }
  std::vector<StreamAppend> appends;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    appends.push_back({ids[i], ExpectedVersion::any(), events[i]});
  }
  const std::string append_id = one_in(4) ? "command-" + std::to_string(++append_ids_) : "";
  const Context around = context();
  const AppendResult result =
      store.append({.streams = appends, .context = around, .append_id = append_id});
  if (one_in(6) && ids.size() == 1 && !events[0].empty()) {
    store.save_snapshot(ids[0], {result.versions[0], result.last, 1, payload()});
  }
}

void RandomHistory::append_to(EventStore& store, int appends) {
  for (int i = 0; i < appends; ++i) {
    // Wall clocks can also step back.
    clock_.advance(std::chrono::microseconds{up_to(100'000'000) - 1'000'000});
    append(store);
  }
}

}  // namespace stela::test
