// The dashboard as lines of text: what stands where, without a terminal.
#pragma once

#include "worker/statistics.hpp"

#include <stela/outbox/messages.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace stela::tool {

enum class Style : std::uint8_t { plain, bold, dim, good, warning, bad };

struct Span {
  std::string text;
  Style style = Style::plain;
};

using Line = std::vector<Span>;

/// What the dashboard shows.
struct View {
  std::string database = {};
  std::string broker_url = {};
  std::string worker = {};
  /// As state_of says it.
  std::string state = {};
  std::chrono::seconds window{0};
  std::chrono::milliseconds next_refresh{0};
  Snapshot done = {};
  OutboxStatus status = {};
  /// Empty if the database answers.
  std::string store_problem = {};
  /// The stream of each trouble that has a sequence.
  std::vector<std::string> trouble_streams = {};
};

/// What the person in front of it chose.
struct Looks {
  bool help = false;
  bool held = false;
  bool typing = false;
  /// Only partitions and errors that contain it.
  std::string filter = {};
};

struct Size {
  int width = 80;
  int height = 24;
};

/// At most `size.height` lines of at most `size.width` columns, without a control character:
/// three columns from 120 on, two from 80 on, else one; few lines where there is little room.
std::vector<Line> lay_out(const View& view, const Looks& looks, Size size);

/// The state in a word, from what is known: "connecting", "relaying", "idle", "standby" (others
/// hold the partitions), "stopped" (all of them wait for an operator), "draining", "broker down",
/// "misconfigured" (the broker is there, and not set up for all that is to be published).
std::string state_of(const Snapshot& done, const OutboxStatus& status, bool draining);

}  // namespace stela::tool
