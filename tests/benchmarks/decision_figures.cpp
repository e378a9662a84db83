// Decisions that span streams, and the tags behind them, against bare loops that do the same work.
#include "appends.hpp"
#include "bench.hpp"
#include "decisions.hpp"
#include "raw_decisions.hpp"

#include <array>
#include <filesystem>
#include <memory>
#include <mutex>
#include <stdexcept>

namespace stela::bench {
namespace {

using sqlite::Durability;

// --- a decision of two views

class BareSubscribing final : public Subject {
 public:
  BareSubscribing(const std::string& path, const School& school)
      : school_{school},
        views_{path},
        decider_{path, {}},
        defined_{views_.kind_of(CourseDefined::event_type.name)},
        subscribed_{views_.kind_of(Subscribed::event_type.name)} {
    for (const Id<Course>& course : school.courses) courses_.push_back(course.stream().name());
    for (const Id<Student>& student : school.students) {
      students_.emplace_back(student.stream().name());
    }
  }

  void prepare() override {
    course_ = dice_.below(courses_.size());
    student_ = dice_.below(students_.size());
  }
  void run() override {
    Seats seats{school_.courses[course_]};
    StudentLoad load{school_.students[student_]};
    const RawViews::Position position = views_.begin();
    views_.of_stream(courses_[course_], [&](std::int64_t kind, std::string_view payload) {
      if (kind == defined_) {
        seats.apply(codec::decode<CourseDefined>(Codec::json, payload));
      } else {
        seats.apply(codec::decode<Subscribed>(Codec::json, payload));
      }
    });
    views_.of_tag(students_[student_], [&](std::int64_t, std::string_view payload) {
      load.apply(codec::decode<Subscribed>(Codec::json, payload));
    });
    views_.end();
    seen += seats.left + load.courses;
    payload_.clear();
    codec::encode(Codec::json, Subscribed{seats.course, load.student}, payload_);
    if (!decider_.append({.position = position,
                          .stream = courses_[course_],
                          .depends_on_stream = true,
                          .tag = students_[student_],
                          .kind = subscribed_,
                          .payload = payload_})) {
      throw std::logic_error{"nobody else decides"};
    }
  }

  std::int64_t seen = 0;

 private:
  const School& school_;
  RawViews views_;
  RawDecider decider_;
  const std::int64_t defined_;
  const std::int64_t subscribed_;
  std::vector<std::string> courses_;
  std::vector<RawTag> students_;
  Dice dice_{5};
  std::size_t course_ = 0;
  std::size_t student_ = 0;
  std::string payload_;
};

void measure_two_views(Bench& bench) {
  const std::string name = "decision.two_views.relaxed.disk";
  if (!bench.begins(name)) return;
  const Folder folder{bench.places().disk};
  const School school{bench.sized<std::int64_t>(1'000, 1'000'000, 1'000'000)};
  {
    auto store = sqlite::open(folder.file("school.db"), {.durability = Durability::relaxed});
    fill_school(store, school);
  }
  RawDatabase{folder.file("school.db"), {}}.truncate_log();
  std::filesystem::copy_file(folder.file("school.db"), folder.file("raw.db"));
  auto store = sqlite::open(folder.file("school.db"), {.durability = Durability::relaxed});
  const ContextScope scope{sample_context()};
  Subscribing ours{store, school};
  BareSubscribing bare{folder.file("raw.db"), school};
  const std::array<Subject*, 2> subjects{&ours, &bare};
  const int operations = bench.sized(40, 2'000, 4'000);
  const auto rounds = take_turns(subjects, {.rounds = bench.rounds(15),
                                            .operations = operations,
                                            .slices = bench.sized(2, 20, 20),
                                            .warm_up = operations});
  if (ours.seen != bare.seen) throw std::logic_error{"the two loops saw different events"};
  bench.add_rate(
      {.name = name,
       .what = "decisions of two views, of some 20 and 5 events, in a store of a million",
       .mode = "relaxed",
       .place = Place::disk,
       .unit = "decisions/s",
       .goal = at_least(0.75)},
      rounds[0], rounds[1], 1);
}

// --- appends with tags

/// As many tags as a random event has, out of these.
class TagPicks {
 public:
  TagPicks(std::size_t count, std::size_t tags) : dice_{29}, chosen_(tags) {
    for (std::size_t i = 0; i < count; ++i) {
      tags_.push_back(StreamId::of("student", basket_id(i).key()));
      raw_.emplace_back(tags_.back().name());
    }
  }

  /// Different ones.
  std::span<const std::size_t> next() {
    const std::size_t first = dice_.next();
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      chosen_[i] = (first + i * (tags_.size() / 7 + 1)) % tags_.size();
    }
    return chosen_;
  }
  const Tag& tag(std::size_t i) const { return tags_[i]; }
  const RawTag& raw(std::size_t i) const { return raw_[i]; }

 private:
  Dice dice_;
  std::vector<std::size_t> chosen_;
  std::vector<Tag> tags_;
  std::vector<RawTag> raw_;
};

class TaggedAppend final : public Subject {
 public:
  TaggedAppend(EventStore& store, const Load& load, TagPicks tags)
      : store_{store}, samples_{load.samples}, picks_{load}, tags_{std::move(tags)} {
    for (std::size_t i = 0; i < load.streams; ++i) {
      streams_.push_back(basket_id(i).stream());
      versions_.emplace_back(events_each);
    }
  }

  /// Of each stream, to begin with.
  static constexpr std::int64_t events_each = 2;

  void prepare() override {
    stream_ = picks_.stream();
    event_ = samples_.some(picks_.sample(), 1).front();
    chosen_.clear();
    for (const std::size_t i : tags_.next()) chosen_.push_back(tags_.tag(i));
    event_.tags = chosen_;
  }
  void run() override {
    const StreamAppend append{
        streams_[stream_], ExpectedVersion::exactly(versions_[stream_]), {&event_, 1}};
    versions_[stream_] = store_.append({.streams = {&append, 1}}).versions.front();
  }

 private:
  EventStore& store_;
  const Samples& samples_;
  Picks picks_;
  TagPicks tags_;
  std::vector<StreamId> streams_;
  std::vector<StreamVersion> versions_;
  std::size_t stream_ = 0;
  NewEvent event_;
  std::vector<Tag> chosen_;
};

class BareTaggedAppend final : public Subject {
 public:
  BareTaggedAppend(RawAppender& appender, const Load& load, TagPicks tags)
      : appender_{appender}, samples_{load.samples}, picks_{load}, tags_{std::move(tags)} {}

  void prepare() override {
    stream_ = picks_.stream();
    event_ = samples_.some(picks_.sample(), 1);
    chosen_.clear();
    for (const std::size_t i : tags_.next()) chosen_.push_back(&tags_.raw(i));
  }
  void run() override { appender_.append(stream_, event_, chosen_); }

 private:
  RawAppender& appender_;
  const Samples& samples_;
  Picks picks_;
  TagPicks tags_;
  std::size_t stream_ = 0;
  std::span<const NewEvent> event_;
  std::vector<const RawTag*> chosen_;
};

struct Tagging {
  Place place;
  std::size_t streams;
  Turns turns;
};

Tagging tagging_of(const Bench& bench, Place place) {
  const int operations = bench.sized(40, 4'000, 8'000);
  return {.place = place,
          .streams = bench.sized<std::size_t>(100, 10'000, 10'000),
          .turns = {.rounds = bench.rounds(25),
                    .operations = operations,
                    .slices = bench.sized(2, 20, 20),
                    .warm_up = operations}};
}

std::string make_tagged_shop(const Folder& folder, const char* name, std::size_t streams) {
  make_shop(folder.file(name), {.streams = streams, .events_each = TaggedAppend::events_each});
  return folder.file(name);
}

void measure_tags(Bench& bench, std::size_t tags, Place place) {
  std::string name = "decision.append_tags." + std::to_string(tags) + ".relaxed.";
  name += to_string(place);
  if (!bench.begins(name)) return;
  const Tagging tagging = tagging_of(bench, place);
  const Folder folder{bench.places().at(place)};
  const Samples samples{Codec::json};
  const ContextScope scope{sample_context()};
  Shop shop{make_tagged_shop(folder, "store.db", tagging.streams), Durability::relaxed};
  RawAppender appender{make_tagged_shop(folder, "raw.db", tagging.streams), {}, tagging.streams};
  const Load load{.samples = samples, .streams = tagging.streams};
  TaggedAppend ours{shop.store, load, {tagging.streams, tags}};
  BareTaggedAppend bare{appender, load, {tagging.streams, tags}};
  const std::array<Subject*, 2> subjects{&ours, &bare};
  const auto rounds = take_turns(subjects, tagging.turns);
  bench.add_rate({.name = name,
                  .what = "1 event with " + std::to_string(tags) +
                          " tags and its pointer a transaction, against the same rows",
                  .mode = "relaxed",
                  .place = place,
                  .goal = at_least(0.85)},
                 rounds[0], rounds[1], 1);
}

/// What the tags of others cost an event that has none.
void measure_untagged(Bench& bench, Place place) {
  std::string name = "decision.append_tags.beside.relaxed.";
  name += to_string(place);
  if (!bench.begins(name)) return;
  const Tagging tagging = tagging_of(bench, place);
  const Folder folder{bench.places().at(place)};
  const Samples samples{Codec::json};
  const ContextScope scope{sample_context()};
  Shop with{make_tagged_shop(folder, "with.db", tagging.streams), Durability::relaxed};
  Shop without{make_tagged_shop(folder, "without.db", tagging.streams), Durability::relaxed};
  fill_school(with.store, School{bench.sized<std::int64_t>(100, 50'000, 50'000)});
  const Load load{.samples = samples, .streams = tagging.streams};
  TaggedAppend beside{with.store, load, {tagging.streams, 0}};
  TaggedAppend alone{without.store, load, {tagging.streams, 0}};
  const std::array<Subject*, 2> subjects{&beside, &alone};
  const auto rounds = take_turns(subjects, tagging.turns);
  bench.add_rate({.name = name,
                  .what = "1 event without tags in a store whose other types have some, against a "
                          "store without tags",
                  .mode = "relaxed",
                  .place = place,
                  .goal = at_least(0.98)},
                 rounds[0], rounds[1], 1);
}

// --- conflicts

/// Bare readers, one for each desk, and a writer that they share under a mutex.
class BareIssuing final : public Subject {
 public:
  struct Writer {
    RawDecider decider;
    std::mutex mutex = {};
  };
  BareIssuing(const std::string& path, Writer& writer, Desk desk)
      : views_{path},
        writer_{writer},
        desk_{std::move(desk)},
        stream_{desk_.customer.stream().name()},
        kind_{views_.kind_of(Issued::event_type.name)} {
    for (const Id<Ledger>& ledger : desk_.ledgers) tags_.emplace_back(ledger.stream().name());
  }

  void run() override {
    const std::size_t turn = turn_++ % tags_.size();
    for (;; ++conflicts) {
      if (try_issue(desk_.ledgers[turn], tags_[turn])) return;
    }
  }

  std::int64_t conflicts = 0;

 private:
  bool try_issue(const Id<Ledger>& ledger, const RawTag& tag) {
    LastNumber last{ledger};
    const RawViews::Position position = views_.begin();
    views_.last_of_tag(tag, [&](std::int64_t, std::string_view payload) {
      last.apply(codec::decode<Issued>(Codec::json, payload));
    });
    views_.end();
    payload_.clear();
    codec::encode(Codec::json, Issued{desk_.customer, ledger, last.number + 1}, payload_);
    const std::lock_guard lock{writer_.mutex};
    return writer_.decider.append(
        {.position = position, .stream = stream_, .tag = tag, .kind = kind_, .payload = payload_});
  }

  RawViews views_;
  Writer& writer_;
  const Desk desk_;
  const std::string stream_;
  const std::int64_t kind_;
  std::vector<RawTag> tags_;
  std::size_t turn_ = 0;
  std::string payload_;
};

/// A database that knows the type, with one invoice.
std::string make_office(const Folder& folder, const char* name) {
  auto store = sqlite::open(folder.file(name));
  const Id<Ledger> other = Id<Ledger>::from("other");
  decide(store, LastNumber{other}, [&](Decision& decision, const LastNumber&) {
    decision.record(Issued{Id<Customer>::from("none"), other, 1});
  });
  return folder.file(name);
}

void measure_conflicts(Bench& bench, std::size_t threads, bool hot) {
  const std::string name = std::string{"decision.conflicts."} + (hot ? "hot." : "cold.") +
                           std::to_string(threads) + ".full.disk";
  if (!bench.begins(name)) return;
  const Folder folder{bench.places().disk};
  auto store = sqlite::open(make_office(folder, "office.db"));
  const std::string raw_path = make_office(folder, "raw.db");
  BareIssuing::Writer writer{RawDecider{raw_path, {.full_sync = true}}};
  const std::vector<Desk> desks = make_desks(threads, hot);
  std::vector<std::unique_ptr<Subject>> ours, bare;
  for (const Desk& desk : desks) {
    ours.push_back(std::make_unique<Issuing>(store, desk));
    bare.push_back(std::make_unique<BareIssuing>(raw_path, writer, desk));
  }
  const std::chrono::milliseconds length{bench.sized(30, 500, 1'000)};
  rate_of(ours, length), rate_of(bare, length);
  std::vector<double> stela, raw, ratio;
  for (int round = 0; round < bench.rounds(11); ++round) {
    stela.push_back(rate_of(ours, length));
    raw.push_back(rate_of(bare, length));
    ratio.push_back(stela.back() / raw.back());
  }
  const Conflicts issued = conflicts_of(ours);
  std::int64_t bare_conflicts = 0;
  for (const auto& one : bare) bare_conflicts += dynamic_cast<BareIssuing&>(*one).conflicts;
  check_numbers(store, desks, issued.decisions);
  report_conflicts(bench.report(), name, hot, issued);
  bench.report().add({.name = name,
                      .what = std::to_string(threads) + " threads, each with the next number of " +
                              (hot ? "one ledger" : "ledgers of its own") +
                              ", against bare readers and a writer under a mutex",
                      .mode = "full",
                      .place = Place::disk,
                      .unit = "decisions/s",
                      .stela = spread_of(stela).median,
                      .raw = spread_of(raw).median,
                      .ratio = spread_of(ratio),
                      .more = {{"conflicts", static_cast<double>(issued.conflicts)},
                               {"decisions", static_cast<double>(issued.decisions)},
                               {"raw_conflicts", static_cast<double>(bare_conflicts)}}});
}

// --- reading by tag

class ReadByTag final : public Subject {
 public:
  ReadByTag(EventStore& store, std::vector<Tag> tags) : store_{store}, tags_{std::move(tags)} {}

  void run() override {
    const Query query{.items = {{.types = {}, .tags = {tags_[dice_.below(tags_.size())]}}}};
    for (const StoredEvent& event : store_.read(query)) {
      ++count;
      bytes += event.payload.size();
    }
  }

  std::size_t count = 0;
  std::size_t bytes = 0;

 private:
  EventStore& store_;
  const std::vector<Tag> tags_;
  Dice dice_{37};
};

class BareReadByTag final : public Subject {
 public:
  BareReadByTag(const std::string& path, const std::vector<Tag>& tags) : views_{path} {
    for (const Tag& tag : tags) tags_.emplace_back(tag.name());
  }

  void run() override {
    (void)views_.begin();
    views_.of_tag(tags_[dice_.below(tags_.size())], [&](std::int64_t, std::string_view payload) {
      ++count;
      bytes += payload.size();
    });
    views_.end();
  }

  std::size_t count = 0;
  std::size_t bytes = 0;

 private:
  RawViews views_;
  std::vector<RawTag> tags_;
  Dice dice_{37};
};

void append_of_each(EventStore& store, const Samples& samples, std::span<const Tag> tags,
                    std::size_t turn) {
  constexpr std::size_t at_once = 500;
  for (std::size_t first = 0; first < tags.size(); first += at_once) {
    const std::size_t count = std::min(at_once, tags.size() - first);
    std::vector<NewEvent> events(count);
    std::vector<StreamId> streams;
    std::vector<StreamAppend> appends;
    for (std::size_t i = 0; i < count; ++i) {
      events[i] = samples.some(turn * 7 + first + i, 1).front();
      events[i].tags = tags.subspan(first + i, 1);
      streams.push_back(basket_id((first + i) / 10).stream());
    }
    for (std::size_t i = 0; i < count; ++i) {
      appends.push_back({streams[i], ExpectedVersion::any(), {&events[i], 1}});
    }
    store.append({.streams = appends});
  }
}

void measure_reading(Bench& bench) {
  const std::string name = "decision.read_by_tag.100";
  if (!bench.begins(name)) return;
  constexpr std::size_t events_each = 100;
  const Folder folder{bench.places().disk};
  const std::string path = folder.file("shop.db");
  auto store = sqlite::open(path, {.durability = Durability::relaxed});
  const Samples samples{Codec::json};
  const ContextScope scope{sample_context()};
  std::vector<Tag> tags;
  for (std::size_t i = 0; i < bench.sized<std::size_t>(10, 2'000, 10'000); ++i) {
    tags.push_back(StreamId::of("student", basket_id(i).key()));
  }
  // One event of each tag after the other.
  for (std::size_t i = 0; i < events_each; ++i) append_of_each(store, samples, tags, i);
  ReadByTag ours{store, tags};
  BareReadByTag bare{path, tags};
  const std::array<Subject*, 2> subjects{&ours, &bare};
  const auto rounds = take_turns(subjects, {.rounds = bench.rounds(15),
                                            .operations = bench.sized(10, 1'000, 2'000),
                                            .slices = bench.sized(2, 20, 20),
                                            .warm_up = bench.sized(10, 1'000, 2'000)});
  if (ours.count != bare.count || ours.bytes != bare.bytes) {
    throw std::logic_error{"the two reads differ"};
  }
  bench.add_rate({.name = name,
                  .what = "100 events of a tag, among as many of other tags between each two",
                  .mode = "read",
                  .place = Place::disk,
                  .goal = at_least(0.75)},
                 rounds[0], rounds[1], static_cast<double>(events_each));
}

}  // namespace

void decision_figures(Bench& bench) {
  measure_two_views(bench);
  for (const std::size_t tags : {0, 1, 2, 5}) measure_tags(bench, tags, Place::disk);
  for (const std::size_t tags : {0, 1, 2, 5}) measure_tags(bench, tags, Place::tmpfs);
  measure_untagged(bench, Place::disk);
  measure_untagged(bench, Place::tmpfs);
  for (const bool hot : {true, false}) {
    for (const std::size_t threads : {1, 8, 64}) measure_conflicts(bench, threads, hot);
  }
  measure_reading(bench);
}

}  // namespace stela::bench
