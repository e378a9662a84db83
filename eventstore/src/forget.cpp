#include "database/database.hpp"
#include "database/transaction.hpp"
#include "forgotten_keys.hpp"
#include "kept_errors.hpp"
#include "keys/seal.hpp"
#include "operations_sql/keys.hpp"

#include <stela/eventstore/detail/erasures.hpp>
#include <stela/eventstore/forget.hpp>
#include <stela/eventstore/keys.hpp>
#include <stela/framework/detail/event_encoder.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/event_set.hpp>

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace stela {
namespace {

namespace forget_sql = operations::sql;

constexpr std::size_t keys_at_a_time = 1'000;

Keyring& keys_of_store(const Store& store) {
  if (Keyring* const keys = store.conventions().keys) return *keys;
  throw UsageError{"the store was opened without keys; open it with `.keys` to forget anybody"};
}

ForgetReport find_keys(Keyring& keys, const StreamId& subject, const ForgetOptions& options) {
  const auto& wanted = options.purposes;
  ForgetReport report;
  for (KeyInfo& key : keys.keys_of(subject.name())) {
    const bool is_wanted = wanted.empty() || std::find(wanted.begin(), wanted.end(),
                                                       key.subject.purpose) != wanted.end();
    if (is_wanted) (key.hold ? report.kept : report.keys).push_back(std::move(key));
  }
  return report;
}

GlobalSequence append_fence(Store& store, const StreamId& subject, const ForgetOptions& options,
                            const std::vector<KeyInfo>& keys) {
  Forgotten fence{.by = options.by, .reason = options.reason};
  for (const KeyInfo& key : keys) {
    fence.keys.push_back(key.id.to_string());
    fence.purposes.push_back(key.subject.purpose);
  }
  const StreamId stream = StreamId::of(Forgotten::category, subject.name());
  GlobalSequence sequence;
  store.transact([&](Transaction& transaction) {
    detail::EventEncoder encoder{store.conventions(), stream};
    encoder.add(fence);
    const StreamAppend append{stream, ExpectedVersion::any(), encoder.events()};
    sequence = transaction.append({.streams = {&append, 1}}).last;
    database::Connection& connection = database::open_transaction(transaction).connection();
    connection.run(forget_sql::unsettle{});
    for (const KeyInfo& key : keys) {
      connection.run(forget_sql::add_forgotten_key{.key_id = keys::text_of(key.id.bytes),
                                                   .sequence = sequence.value(),
                                                   .forgotten_at = store.database().now()});
    }
  });
  return sequence;
}

/// Calls `use(ids)` with a thousand forgotten keys of the store at a time.
template <class F>
void for_each_forgotten(Store& store, F&& use) {
  std::string after;
  while (true) {
    std::vector<KeyId> ids;
    store.database().read([&](database::Connection& connection) {
      auto rows = connection.rows(
          forget_sql::forgotten_keys{.after = after, .limit = std::int64_t{keys_at_a_time}});
      while (rows.step()) ids.push_back({keys::code_of(rows.key_id())});
    });
    if (ids.empty()) return;
    after = keys::text_of(ids.back().bytes);
    use(ids);
  }
}

/// A restored store lacks the fences of keys destroyed since the backup. Their subjects are
/// unknown.
std::size_t add_missing_fences(Store& store, Keys& keys, bool dry_run = false) {
  std::size_t added = 0;
  std::int64_t after = 0;
  while (true) {
    const std::vector<DestroyedKey> destroyed = keys.destroyed(after, keys_at_a_time);
    if (destroyed.empty()) return added;
    after = destroyed.back().number;
    std::vector<DestroyedKey> missing;
    store.database().read([&](database::Connection& connection) {
      for (const DestroyedKey& key : destroyed) {
        const bool is_there =
            connection.rows(forget_sql::find_forgotten_key{.key_id = keys::text_of(key.id.bytes)})
                .step();
        if (!is_there) missing.push_back(key);
      }
    });
    added += missing.size();
    if (missing.empty() || dry_run) continue;
    std::vector<KeyId> ids;
    for (const DestroyedKey& key : missing) ids.push_back(key.id);
    clear_kept_errors(store, ids);
    store.database().write([&](database::Connection& connection) {
      for (const DestroyedKey& key : missing) {
        connection.run(forget_sql::add_forgotten_key{.key_id = keys::text_of(key.id.bytes),
                                                     .sequence = 0,
                                                     .forgotten_at = key.destroyed_at});
      }
    });
  }
}

std::int64_t count_living(Keys& keys, const std::vector<KeyId>& ids) {
  return std::count_if(ids.begin(), ids.end(), [&](const KeyId& id) {
    try {
      return keys.find(id) != nullptr;
    } catch (const KeyMissing&) {
      return false;
    }
  });
}

/// The living keys without a hold; none if a living key belongs to another subject.
std::vector<KeyId> own_keys(Keys& keys, const StreamId& subject,
                            const std::vector<std::string>& ids) {
  const std::vector<KeyInfo> living = keys.keys_of(subject.name());
  std::vector<KeyId> own;
  for (const std::string& text : ids) {
    const auto id = KeyId::parse(text);
    if (!id) return {};
    const auto found = std::find_if(living.begin(), living.end(),
                                    [&](const KeyInfo& key) { return key.id == *id; });
    if (found == living.end()) {
      if (count_living(keys, {*id}) > 0) return {};
    } else if (!found->hold) {
      own.push_back(*id);
    }
  }
  return own;
}

/// Finds living keys that a stored event forgets, but that aren't recorded as forgotten: the event
/// was read back from the broker. Others may publish there, so only the person's own keys count.
void find_unfenced(Store& store, Keys& keys, ReappliedErasures& all, std::vector<KeyId>& ids) {
  EventDecoder<EventSet<Forgotten>> decoder{store.conventions().reading()};
  for (const StoredEvent& event :
       store.read_all({.event_types = {std::string{Forgotten::event_type.name}}})) {
    const std::size_t before = ids.size();
    try {
      const StreamId subject = forgotten_subject(event.stream);
      decoder.decode(event, [&](const Forgotten& fence) {
        for (const KeyId& id : own_keys(keys, subject, fence.keys)) {
          if (!fence_of(store, id)) ids.push_back(id);
        }
      });
    } catch (const Error& e) {
      // The publisher wrote another format; it forgets nobody.
      if (e.is_retryable() || e.code() == ErrorCode::store_failed) throw;
    }
    if (ids.size() > before) all.events.push_back(event.sequence);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

/// A store's knowledge of its key store.
struct Binding {
  std::optional<Uuid> key_store = {};
  std::int64_t newest_key = 0;
  /// The key store's version when the two last agreed.
  std::int64_t settled_as = -1;
};

Binding binding_of(const Store& store) {
  Binding binding;
  store.database().read([&](database::Connection& connection) {
    auto row = connection.rows(forget_sql::key_store{});
    if (!row.step()) return;
    binding = {Uuid{keys::code_of(row.key_store())}, row.newest_key(), row.settled_as()};
  });
  return binding;
}

/// The store's errors would say that nothing was written, but the fence was.
void destroy_behind(GlobalSequence fence, Store& store, Keyring& keys, std::span<const KeyId> ids) {
  const std::string begun = "event " + std::to_string(fence.value()) +
                            " forgets the person, and the keys are yet to be destroyed: whoever "
                            "opens the store with its keys next does it; now it failed: ";
  try {
    clear_kept_errors(store, ids);
    keys.destroy(ids);
  } catch (const StoreBusy& e) {
    throw StoreBusy{begun + e.what()};
  } catch (const StoreFull& e) {
    throw StoreFull{begun + e.what()};
  } catch (const StoreFailed& e) {
    throw StoreFailed{begun + e.what()};
  }
}

}  // namespace

StreamId forgotten_subject(const StreamId& stream) {
  if (stream.category() != Forgotten::category) {
    throw UsageError{"stream '" + stream.name() + "' says of nobody that he was forgotten"};
  }
  return StreamId::parse(stream.key());
}

ForgetReport forget(Store& store, const StreamId& subject, const ForgetOptions& options) {
  Keyring& keys = keys_of_store(store);
  ForgetReport report = find_keys(keys, subject, options);
  if (report.keys.empty()) return report;
  report.fence = append_fence(store, subject, options, report.keys);
  std::vector<KeyId> ids;
  for (const KeyInfo& key : report.keys) ids.push_back(key.id);
  destroy_behind(report.fence, store, keys, ids);
  return report;
}

void allow_again(Store& store, const StreamId& subject) {
  settle_keys(store, false);  // complete an interrupted forgetting first
  keys_of_store(store).allow_again(subject.name());
}

std::optional<Uuid> key_store_of(const Store& store) {
  return binding_of(store).key_store;
}

void check_key_store(Store& store, Keys& keys) {
  const Binding binding = binding_of(store);
  if (binding.key_store) return keys.check_standing(*binding.key_store, binding.newest_key);
  if (keys.standing().highest == 0) return;
  throw UsageError{
      "this store has no keys yet, and the key store is in use: it is another store's; name the "
      "right one, or let the program that owns both open them first"};
}

std::optional<GlobalSequence> fence_of(Store& store, const KeyId& id) {
  std::optional<GlobalSequence> fence;
  store.database().read([&](database::Connection& connection) {
    auto row = connection.rows(forget_sql::find_forgotten_key{.key_id = keys::text_of(id.bytes)});
    if (row.step()) fence = GlobalSequence{row.sequence()};
  });
  return fence;
}

bool has_personal_fields(Store& store) {
  bool has_some = false;
  store.database().read([&](database::Connection& connection) {
    has_some = !read_personal_types(connection).empty();
  });
  return has_some;
}

void clear_error_texts(Store& store) {
  for_each_forgotten(store, [&](const std::vector<KeyId>& ids) { clear_kept_errors(store, ids); });
}

ReappliedErasures reapply_erasures(Store& store, Keys& keys, bool dry_run) {
  check_key_store(store, keys);
  ReappliedErasures all{.to_destroy = static_cast<std::int64_t>(keys.brought_back())};
  std::vector<KeyId> unfenced;
  find_unfenced(store, keys, all, unfenced);
  all.by_events = std::ssize(unfenced);
  if (dry_run) {
    all.to_destroy += std::ssize(unfenced);
  } else {
    fence_keys(store, unfenced);
  }
  for_each_forgotten(store, [&](const std::vector<KeyId>& ids) {
    all.to_destroy += count_living(keys, ids);
    if (dry_run) return;
    // A process that still had a value may have written one meanwhile.
    clear_kept_errors(store, ids);
    keys.destroy(ids);
  });
  all.to_fence = static_cast<std::int64_t>(add_missing_fences(store, keys, dry_run));
  return all;
}

std::int64_t fence_keys(Store& store, std::span<const KeyId> ids) {
  std::int64_t added = 0;
  if (ids.empty()) return added;
  const Timestamp now = store.database().now();
  store.database().write([&](database::Connection& connection) {
    added = 0;
    connection.run(forget_sql::unsettle{});
    for (const KeyId& id : ids) {
      added += connection.run(forget_sql::add_forgotten_key{
          .key_id = keys::text_of(id.bytes), .sequence = 0, .forgotten_at = now});
    }
  });
  return added;
}

void settle_keys(Store& store, bool read_only) {
  auto* const keys = dynamic_cast<Keys*>(store.conventions().keys);
  if (keys == nullptr) return;
  const KeyStanding standing = keys->standing();
  const Binding binding = binding_of(store);
  const auto& bound = binding.key_store;
  if (bound) keys->check_standing(*bound, binding.newest_key);
  if (read_only || (bound && binding.settled_as == standing.version)) return;
  if (!bound) {
    store.database().write([&](database::Connection& connection) {
      connection.run(forget_sql::set_key_store{.key_store = keys::text_of(standing.id.bytes())});
    });
  }
  for_each_forgotten(store, [&](const std::vector<KeyId>& ids) {
    // A restored store may be from between the fence and the clearing.
    clear_kept_errors(store, ids);
    keys->destroy(ids);
  });
  if (const std::size_t added = add_missing_fences(store, *keys); added > 0) {
    const LogEntry::Field count{"keys", std::to_string(added)};
    store.conventions().log->write(
        {.level = LogLevel::warning,
         .name = "keys.fences_restored",
         .message =
             "the store is older than what was forgotten since; rebuild projectors that keep "
             "personal data in clear",
         .fields = {&count, 1}});
  }
  // A later version than `standing` means new erasures, which the next comparison finds.
  store.database().write([&](database::Connection& connection) {
    connection.run(
        forget_sql::note_settled{.settled_as = standing.version, .was = binding.settled_as});
  });
}

}  // namespace stela
