// events tree, events list by correlation or cause, index build.
#include "commands/event_links.hpp"
#include "cli/exit.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "description/outbox.hpp"
#include "store_session.hpp"

#include <stela/eventstore/operations.hpp>

#include <algorithm>
#include <map>

namespace stela::tool {
namespace {

constexpr std::int64_t default_rows = 200;
/// Chains of causes are rarely this long; in a damaged store one may never end.
constexpr std::size_t max_causes = 100;

/// An event of a tree, and its place there.
struct TreeNode {
  std::int64_t depth = 0;
  GlobalSequence sequence = {};
  std::string stream = {};
  StreamVersion version = {};
  EventId id = {};
  std::string type = {};
  Timestamp recorded_at = {};
  EventId cause = {};
  bool is_asked = false;
  /// "local", "not in the outbox", or the state of its message.
  std::string state = {};
  std::optional<OutboxMessage> message = {};
};

std::string shown_event(const TreeNode& node) {
  return std::string(static_cast<std::size_t>(2 * node.depth), ' ') + node.type +
         (node.is_asked ? " *" : "");
}

std::string shown_state(const TreeNode& node) {
  if (!node.message) return node.state;
  const OutboxMessage& message = *node.message;
  std::string text = node.state;
  if (const std::string place = broker_place_of(message); !place.empty()) text += " as " + place;
  // The only partition of an outbox is labelled "all".
  if (!message.reason && message.partition != PartitionId{}) {
    text += " in " + message.partition.label();
  }
  if (message.reason == SetAsideReason::behind) text += " behind an earlier message";
  if (!message.last_error.empty()) text += ": " + in_one_line(message.last_error);
  return text;
}

constexpr Field<TreeNode> tree_fields[] = {
    field<&TreeNode::sequence>("sequence"),
    field<&TreeNode::depth>("depth"),
    field<&TreeNode::stream>("stream"),
    field<&TreeNode::version>("stream_version"),
    field<&TreeNode::id>("id"),
    field<&TreeNode::type>("type"),
    field<&TreeNode::recorded_at>("recorded_at"),
    field<[](const TreeNode& node) { return unless_empty(node.cause); }>("causation_id"),
    field<&TreeNode::is_asked>("is_asked"),
    field<&TreeNode::state>("state", {.kind = Kind::word}),
    field<[](const TreeNode& node) {
      return node.message ? std::optional{node.message->partition} : std::nullopt;
    }>("partition"),
    field<[](const TreeNode& node) {
      // A batch has a first and a last position.
      const bool is_known = node.message && node.message->broker_from != 0 &&
                            node.message->broker_from == node.message->broker_to;
      return is_known ? std::optional{static_cast<std::int64_t>(node.message->broker_to)}
                      : std::nullopt;
    }>("broker_sequence"),
    field<[](const TreeNode& node) {
      return node.message ? node.message->last_error : std::string{};
    }>("error", {.kind = Kind::untrusted}),
    field<shown_event>("event", {.is_text_only = true}),
    field<[](const TreeNode& node) {
      return node.stream + '@' + std::to_string(node.version.value());
    }>("place", {.title = "stream", .is_text_only = true}),
    field<shown_state>("stands", {.title = "state", .most = 60, .is_text_only = true}),
};
constexpr Description<TreeNode> tree_node{tree_fields,
                                          {.table = "sequence event place recorded_at stands"}};

/// The causes of an event, the event, and its effects.
class Tree {
 public:
  explicit Tree(StoreSession& session) : session_{session} {}

  void build(const StoredEvent& asked, std::int64_t limit) {
    std::vector<TreeNode> path{node_of(asked)};
    path.front().is_asked = true;
    climb(path);
    std::reverse(path.begin(), path.end());
    for (TreeNode& node : path) {
      node.depth = std::ssize(nodes_);
      nodes_.push_back(std::move(node));
    }
    effects_ = StoreOperations{session_.store()}.all_effects_of(asked.id, asked.sequence, limit);
    read_effects();
    descend(nodes_.back().id, nodes_.back().depth + 1);
  }

  const std::vector<TreeNode>& nodes() const noexcept { return nodes_; }
  const Effects& effects() const noexcept { return effects_; }
  /// The first event's cause if the store lacks it. Nil if there is none.
  const EventId& missing_cause() const noexcept { return missing_cause_; }
  /// An earlier cause of the first event that wasn't looked up, because the chain is too long. Nil
  /// if there is none.
  const EventId& further_cause() const noexcept { return further_cause_; }

 private:
  TreeNode node_of(const StoredEvent& event) {
    TreeNode node{.sequence = event.sequence,
                  .stream = event.stream.name(),
                  .version = event.version,
                  .id = event.id,
                  .type = event.type(),
                  .recorded_at = event.recorded_at,
                  .cause = event.causation_id,
                  .state = event.publishes() ? "not in the outbox" : "local"};
    if (event.publishes() && session_.has_outbox()) {
      node.message = session_.operations().show(event.sequence);
      if (node.message) node.state = to_string(node.message->state);
    }
    return node;
  }

  void climb(std::vector<TreeNode>& path) {
    Store& store = session_.store();
    while (!path.back().cause.is_nil() && path.size() < max_causes) {
      missing_cause_ = path.back().cause;
      const auto found = StoreOperations{store}.find_event(missing_cause_, most_near);
      // A later event can't be a cause.
      if (!found || *found >= path.back().sequence) return;
      for (const StoredEvent& event : store.read_at({{*found}})) path.push_back(node_of(event));
      missing_cause_ = {};
    }
    further_cause_ = path.back().cause;
  }

  void read_effects() {
    std::vector<GlobalSequence> sequences;
    for (const Effect& effect : effects_.effects) sequences.push_back(effect.sequence);
    for (const StoredEvent& event : session_.store().read_at(sequences)) {
      of_cause_[event.causation_id].push_back(node_of(event));
    }
  }

  void descend(const EventId& cause, std::int64_t depth) {
    // Not recursive, because the data decides how deep it goes.
    std::vector<TreeNode> open;
    const auto open_effects = [&](const EventId& of, std::int64_t at) {
      auto& effects = of_cause_[of];
      for (auto effect = effects.rbegin(); effect != effects.rend(); ++effect) {
        effect->depth = at;
        open.push_back(std::move(*effect));
      }
      effects.clear();
    };
    open_effects(cause, depth);
    while (!open.empty()) {
      TreeNode node = std::move(open.back());
      open.pop_back();
      nodes_.push_back(node);
      open_effects(node.id, node.depth + 1);
    }
  }

  StoreSession& session_;
  std::vector<TreeNode> nodes_;
  Effects effects_;
  EventId missing_cause_;
  EventId further_cause_;
  std::map<EventId, std::vector<TreeNode>> of_cause_;
};

int show_tree(Invocation& call) {
  const std::int64_t limit = call.arguments.integer("--limit", {1, largest}).value_or(default_rows);
  StoreSession session{call, {.only_reads = true}};
  Tree tree{session};
  for (const StoredEvent& event : session.store().read_at({{event_asked_for(call, session)}})) {
    tree.build(event, limit);
  }
  print_list(call.out, tree_node, tree.nodes());
  if (const EventId& cause = tree.missing_cause(); !cause.is_nil()) {
    call.out.note("The cause of the first one, " + cause.to_string() + ", isn't found here.");
  }
  if (const EventId& cause = tree.further_cause(); !cause.is_nil()) {
    call.out.note("Earlier causes: 'events tree " + cause.to_string() + "'.");
  }
  if (tree.effects().has_more) call.out.note("More effects: use --limit.");
  note_skipped(call, tree.effects().skipped);
  return done;
}

int build_index(Invocation& call) {
  const Signals signals{call};
  StoreSession session{call};
  ProgressBar bar{call.out, "events"};
  const auto indexed = StoreOperations{session.store()}.index_links(
      {.again = call.arguments.has("--again"),
       .progress = [&](const Progress& p) { bar.show(p.stage, p.done, p.total); },
       .stop = signals.token()});
  bar.clear();
  print_result(
      call.out,
      {{"events", indexed.events}, {"through", indexed.through}, {"finished", indexed.finished}},
      "Indexed " + counted(indexed.events, "event") +
          (indexed.finished ? "." : " before the interruption; run it again to continue."));
  return indexed.finished ? done : interrupted;
}

}  // namespace

GlobalSequence event_asked_for(Invocation& call, StoreSession& session) {
  const std::string& what = call.arguments.operands().front();
  const auto id = Uuid::parse(what);
  const std::int64_t most = call.arguments.has("--look-further") ? no_limit : most_near;
  const auto sequence =
      id ? StoreOperations{session.store()}.find_event(*id, most)
         : std::optional{GlobalSequence{to_integer(what, "an event's sequence", {1, largest})}};
  if (sequence) {
    for (const StoredEvent& event : session.store().read_at({{*sequence}})) return event.sequence;
  }
  const bool is_bounded = id && session.store().last_sequence().value() > most;
  throw Exit{not_found, "there is no event " + in_one_line(what) +
                            (is_bounded ? " among the " + in_digits(most) +
                                              " around its time; all: --look-further"
                                        : "")};
}

void note_skipped(Invocation& call, std::int64_t events) {
  if (events == 0) return;
  call.out.note("Not looked at: " + counted(events, "event") + " without an index; run '" +
                call.app.name + " index build'.");
}

std::optional<LinkQuery> links_asked_for(const Arguments& given) {
  const auto correlation = given.text("--correlation");
  const auto cause = given.text("--causation");
  if (!correlation && !cause) return std::nullopt;
  for (const char* other : {"--since", "--until", "--stream", "--category", "--type"}) {
    if (!given.all(other).empty() || (correlation && cause)) {
      throw Misuse{
          "--correlation ID or --causation ID go with --from, --to, --limit and --newest-first"};
    }
  }
  LinkQuery query{.correlation = correlation.value_or("")};
  if (cause) {
    const auto id = Uuid::parse(*cause);
    if (!id) throw Misuse{"--causation is an event's id, not '" + in_one_line(*cause) + "'"};
    query.cause = *id;
  }
  return query;
}

std::vector<Command> link_commands() {
  return {
      {.path = "events tree",
       .summary = "Show what caused an event, and what it led to",
       .about =
           "Its causes up to the first, and its effects over all streams, each with the state of "
           "its message: published with the broker's sequence, pending, parked, or local if it "
           "isn't one that is published. * marks the event that was asked for. --json prints an "
           "object for each, with its depth.",
       .operands = {{"EVENT", "its sequence, or its id"}},
       .options = {db_option,
                   {"--limit", "N", "at most this many effects (default 200)"},
                   look_for_id_option},
       .examples = {{"what an order led to", "events tree 17"}},
       .run = show_tree},
      {.path = "index build",
       .summary = "Index events by correlation and cause",
       .about =
           "Look-ups by correlation, cause or id read the newest million events that aren't "
           "indexed; with more of them, run this now and then. It indexes what came since the last "
           "time, in short transactions, while appends continue. If it is interrupted, run it "
           "again.",
       .options = {db_option, {"--again", "", "remove the index first, as 'verify' may advise"}},
       .examples = {{"every night", "index build --db shop.db"}},
       .run = build_index},
  };
}

}  // namespace stela::tool
