#include "sqlite/candidates.hpp"

#include "sqlite/kind_blocks.hpp"
#include "sqlite_sql/kinds.hpp"
#include "sqlite_sql/streams.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <vector>

namespace stela::sqlite {
namespace {

/// The most events that one statement scans, because a filter may match nothing for long.
constexpr std::int64_t window = 65'536;

/// With more streams than this, all events are scanned.
constexpr std::size_t max_streams = 256;
/// A window with more events than this is read entirely.
constexpr std::size_t max_single_events = window / 16;

/// All events, one window at a time.
class AllEvents final : public Candidates {
 public:
  explicit AllEvents(bool forward) noexcept : forward_{forward} {}

  std::optional<Range> next(Connection&, Range left) override {
    if (left.end - left.begin < window) return left;
    if (forward_) return Range{left.begin, left.begin + window - 1};
    return Range{left.end - window + 1, left.end};
  }

 private:
  bool forward_;
};

/// The blocks with events of some kinds.
class KindEvents final : public Candidates {
 public:
  KindEvents(bool forward, const std::string& categories, const std::string& types)
      : forward_{forward}, categories_{categories}, types_{types} {}

  std::optional<Range> next(Connection& connection, Range left) override {
    if (!kinds_) find_kinds(connection);
    const std::int64_t from = block_of(forward_ ? left.begin : left.end);
    while (at_ < blocks_.size() && distance(blocks_[at_], from) < 0) ++at_;
    if (at_ == blocks_.size() && !are_all_known_) find_blocks(connection, from);
    if (at_ == blocks_.size()) return std::nullopt;
    // Join adjacent blocks.
    std::size_t last = at_;
    while (last + 1 < blocks_.size() && last + 1 - at_ < max_blocks &&
           distance(blocks_[last + 1], blocks_[last]) == 1) {
      ++last;
    }
    const auto [low, high] = std::minmax(blocks_[at_], blocks_[last]);
    const Range range{std::max(left.begin, low * block_size),
                      std::min(left.end, high * block_size + block_size - 1)};
    return range.begin <= range.end ? std::optional{range} : std::nullopt;
  }

 private:
  static constexpr std::size_t max_blocks = window / block_size;

  std::int64_t distance(std::int64_t to, std::int64_t from) const noexcept {
    return forward_ ? to - from : from - to;
  }

  void find_kinds(Connection& connection) {
    kinds_.emplace();
    auto rows = connection.rows(
        sql::kinds_matching{.categories = or_null(categories_), .types = or_null(types_)});
    while (rows.step()) kinds_->push_back(rows.kind());
  }

  /// Finds the next blocks of each kind, as far as the blocks of all kinds are known.
  void find_blocks(Connection& connection, std::int64_t from) {
    blocks_.clear();
    at_ = 0;
    std::optional<std::int64_t> known_to;
    for (const std::int64_t kind : *kinds_) {
      constexpr auto limit = static_cast<std::int64_t>(max_blocks);
      auto rows =
          forward_ ? connection.rows(sql::kind_blocks{.kind = kind, .from = from, .limit = limit})
                   : connection.rows(
                         sql::kind_blocks_backward{.kind = kind, .from = from, .limit = limit});
      std::size_t found = 0;
      for (; rows.step(); ++found) blocks_.push_back(rows.block());
      if (found < max_blocks) continue;
      if (!known_to || distance(blocks_.back(), *known_to) < 0) known_to = blocks_.back();
    }
    are_all_known_ = !known_to;
    if (known_to) {
      std::erase_if(blocks_, [&](std::int64_t block) { return distance(block, *known_to) > 0; });
    }
    std::sort(blocks_.begin(), blocks_.end());
    blocks_.erase(std::unique(blocks_.begin(), blocks_.end()), blocks_.end());
    if (!forward_) std::reverse(blocks_.begin(), blocks_.end());
  }

  bool forward_;
  std::string categories_;
  std::string types_;
  std::optional<std::vector<std::int64_t>> kinds_;
  /// The blocks found so far; those from at_ on are unread.
  std::vector<std::int64_t> blocks_;
  std::size_t at_ = 0;
  /// No blocks follow those.
  bool are_all_known_ = false;
};

/// The events of some streams, found in the index of streams and versions.
class StreamEvents final : public Candidates {
 public:
  StreamEvents(bool forward, const std::vector<std::string>& names)
      : forward_{forward}, names_{names} {
    std::sort(names_.begin(), names_.end());
    names_.erase(std::unique(names_.begin(), names_.end()), names_.end());
  }

  std::optional<Range> next(Connection& connection, Range left) override {
    if (!begun_) begin(connection, left);
    if (at_ == found_.size()) {
      if (const auto whole = look(connection, left)) return whole;
    }
    if (at_ == found_.size()) return std::nullopt;
    const std::int64_t first = found_[at_];
    std::int64_t last = first;
    while (++at_ < found_.size() && found_[at_] == last + step()) last = found_[at_];
    const auto [low, high] = std::minmax(first, last);
    return Range{low, high, true};
  }

 private:
  struct Stream {
    std::int64_t number;
    std::int64_t last_version;
    /// The stream's next event; none if `version` is 0.
    std::int64_t version = 0;
    std::int64_t sequence = 0;
  };

  std::int64_t step() const noexcept { return forward_ ? 1 : -1; }
  bool is_before(std::int64_t a, std::int64_t b) const noexcept { return forward_ ? a < b : a > b; }
  static bool is_within(std::int64_t sequence, Range range) noexcept {
    return range.begin <= sequence && sequence <= range.end;
  }

  void begin(Connection& connection, Range left) {
    begun_ = true;
    for (const std::string& name : names_) {
      auto row = connection.rows(sql::stream_last_version{.name = name});
      if (!row.step()) continue;
      streams_.push_back({row.stream(), row.version()});
      seek(connection, streams_.back(), left);
    }
  }

  /// Finds the stream's next event within `left`: its sequences grow with its versions.
  void seek(Connection& connection, Stream& stream, Range left) {
    std::int64_t low = 0;
    std::int64_t high = stream.last_version + 1;
    const std::int64_t bound = forward_ ? left.begin : left.end + 1;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (sequence_of(connection, stream.number, middle) < bound ? low : high) = middle;
    }
    stream.version = forward_ ? high : low;
    if (stream.version > stream.last_version) stream.version = 0;
    if (stream.version == 0) return;
    stream.sequence = sequence_of(connection, stream.number, stream.version);
  }

  std::int64_t sequence_of(Connection& connection, std::int64_t stream, std::int64_t version) {
    auto row =
        connection.rows(sql::stream_sequences{.stream = stream, .from = version, .limit = 1});
    if (!row.step() || row.version() != version) fail(stream, version);
    return row.sequence();
  }

  [[noreturn]] static void fail(std::int64_t stream, std::int64_t version) {
    throw CorruptEvent{"version " + std::to_string(version) + " of stream number " +
                       std::to_string(stream) + " is missing; restore it from a backup"};
  }

  /// Finds the events of the window that starts at the next one. If there are too many, returns the
  /// window itself.
  std::optional<Range> look(Connection& connection, Range left) {
    found_.clear();
    at_ = 0;
    std::optional<std::int64_t> nearest;
    for (Stream& stream : streams_) {
      if (was_whole_) seek(connection, stream, left);
      if (stream.version == 0 || !is_within(stream.sequence, left)) continue;
      if (!nearest || is_before(stream.sequence, *nearest)) nearest = stream.sequence;
    }
    was_whole_ = false;
    if (!nearest) return std::nullopt;
    const Range whole{forward_ ? *nearest : std::max(*nearest - window + 1, left.begin),
                      forward_ ? std::min(*nearest + window - 1, left.end) : *nearest};
    for (Stream& stream : streams_) {
      collect(connection, stream, whole);
      was_whole_ = found_.size() > max_single_events;
      if (was_whole_) break;
    }
    std::sort(found_.begin(), found_.end());
    if (!forward_) std::reverse(found_.begin(), found_.end());
    if (!was_whole_) return std::nullopt;
    found_.clear();
    return whole;
  }

  /// Advances to the stream's first event after `range`, or stops at too many events.
  void collect(Connection& connection, Stream& stream, Range range) {
    if (stream.version == 0 || !is_within(stream.sequence, range)) return;
    auto rows = forward_ ? find<sql::stream_sequences>(connection, stream)
                         : find<sql::stream_sequences_backward>(connection, stream);
    while (rows.step()) {
      if (rows.version() != stream.version) fail(stream.number, stream.version);
      stream.sequence = rows.sequence();
      if (!is_within(stream.sequence, range)) return;
      found_.push_back(stream.sequence);
      stream.version += step();
    }
    stream.version = 0;
  }

  template <class Statement>
  static sql::stream_place_row find(Connection& connection, const Stream& stream) {
    return connection.rows(Statement{.stream = stream.number,
                                     .from = stream.version,
                                     .limit = static_cast<std::int64_t>(max_single_events) + 2});
  }

  bool forward_;
  std::vector<std::string> names_;
  bool begun_ = false;
  std::vector<Stream> streams_;
  std::vector<std::int64_t> found_;
  std::size_t at_ = 0;
  /// The last range was an entire window: the streams' positions are somewhere in it.
  bool was_whole_ = false;
};

}  // namespace

std::unique_ptr<Candidates> find_candidates(const AllQuery& query, const std::string& categories,
                                            const std::string& types) {
  const bool forward = query.direction == Direction::forward;
  if (!query.streams.empty() && query.streams.size() <= max_streams) {
    return std::make_unique<StreamEvents>(forward, query.streams);
  }
  if (!categories.empty() || !types.empty()) {
    return std::make_unique<KindEvents>(forward, categories, types);
  }
  return std::make_unique<AllEvents>(forward);
}

}  // namespace stela::sqlite
