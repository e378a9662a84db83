// tags list, show, types, add, forget.
#include "cli/exit.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "description/eventstore.hpp"
#include "store_session.hpp"

#include <stela/eventstore/tags.hpp>
#include <stela/framework/query.hpp>

#include <algorithm>
#include <vector>

namespace stela::tool {
namespace {

int list_tag_entries(Invocation& call) {
  const std::string category = call.arguments.text("--category").value_or("");
  Page page{call.arguments};
  TagListing which{
      .after = call.arguments.text("--after").value_or(""),
      .limit = category.empty() ? std::min(page.rows_read(), rows_at_once) : rows_at_once};
  StoreSession session{call, {.only_reads = true}};
  Listing listing{call.out, description::tag};
  const auto take = [&](const TagEntry& entry) {
    if (category.empty()) return page.take(entry.tag.name());
    if (!page.look(entry.tag.name())) return false;
    return entry.tag.category() != category || page.take(entry.tag.name());
  };
  for (bool goes_on = true; goes_on;) {
    std::vector<TagEntry> tags = list_tags(session.store(), which);
    goes_on = static_cast<std::int64_t>(tags.size()) == which.limit;
    if (goes_on) which.after = tags.back().tag.name();
    const auto end = std::find_if_not(tags.begin(), tags.end(), take);
    goes_on = goes_on && end == tags.end();
    tags.erase(end, tags.end());
    std::erase_if(tags, [&](const TagEntry& entry) {
      return !category.empty() && entry.tag.category() != category;
    });
    // Sorts each page by its texts. The pages follow the order of the index.
    std::sort(tags.begin(), tags.end(), [](const auto& a, const auto& b) { return a.tag < b.tag; });
    for (const TagEntry& entry : tags) listing.add(entry);
  }
  listing.print();
  page.tell(call.out, "tags", 0);
  return done;
}

int show_tag(Invocation& call) {
  const Tag tag = Tag::parse(call.arguments.operands().front());
  EventSelection selection{call.arguments};
  Page page{call.arguments};
  StoreSession session{call, {.only_reads = true}};
  const Query query{.items = {{.types = selection.query.event_types, .tags = {tag}}}};
  print_matching(call, session, selection, query, page);
  if (page.shown() > 0 || !page.is_complete()) return done;
  throw Exit{not_found, "no event there has the tag '" + tag.name() + "'"};
}

int types(Invocation& call) {
  StoreSession session{call, {.only_reads = true}};
  print_list(call.out, description::tag_type, session.store().tag_catalogue().types);
  return done;
}

const App::TagAdder& adder_of(const App& app, const std::string& type) {
  const auto found = app.tag_adders().find(type);
  if (found != app.tag_adders().end()) return found->second;
  throw Exit{failed, "'" + app.name + "' doesn't know the tags of '" + in_one_line(type) +
                         "': an application that embeds stela::tool does, once it calls "
                         "app.event_tags<…>()"};
}

int add_tags_to_events(Invocation& call) {
  const std::string type = call.arguments.required("--type");
  const App::TagAdder& adder = adder_of(call.app, type);
  const Signals signals{call};
  StoreSession session{call};
  ProgressBar bar{call.out, "events"};
  const AddedTags added = adder(
      session.store(), {.progress = [&](const Progress& p) { bar.show(p.stage, p.done, p.total); },
                        .stop = signals.token()});
  bar.clear();
  print_result(call.out,
               {{"events", added.events}, {"tagged", added.tagged}, {"finished", added.finished}},
               "Tagged " + counted(added.tagged, "event") + " of " + std::to_string(added.events) +
                   (added.finished ? "; decisions can rely on these tags."
                                   : "; interrupted: run it again to continue."));
  return added.finished ? done : interrupted;
}

int forget(Invocation& call) {
  const std::string type = call.arguments.required("--type");
  const std::string category = call.arguments.required("--category");
  StoreSession session{call};
  if (!call.confirm("Let events of type '" + in_one_line(type) + "' do without tags of category '" +
                    in_one_line(category) + "'? Decisions that need them are refused.")) {
    return failed;
  }
  if (!forget_tags(session.store(), type, category)) {
    throw Exit{not_found, "events of type '" + in_one_line(type) +
                              "' don't carry tags of category '" + in_one_line(category) + "'"};
  }
  print_result(call.out, {{"forgotten", true}},
               "Events of type '" + in_one_line(type) + "' may do without.");
  return done;
}

}  // namespace

std::vector<Command> tag_commands() {
  return {
      {.path = "tags list",
       .summary = "List tags and their first events",
       .about = "The tags that streams are by themselves aren't among them: see 'streams list'. A "
                "page is sorted; pages follow each other as an index has them.",
       .options = {db_option,
                   {"--category", "NAME", "only tags of this category"},
                   {"--after", "TAG", "continue after this tag"},
                   limit_option,
                   look_further_option},
       .examples = {{"every student that an event names", "tags list --category student"}},
       .run = list_tag_entries},
      {.path = "tags show",
       .summary = "List the events that have a tag",
       .operands = {{"TAG", "category-key, as in a stream's name"}},
       .options = {db_option, since_option, until_option, type_option, newest_first_option,
                   limit_option, after_event_option, look_further_option},
       .examples = {{"what a student is part of", "tags show student-s1"},
                    {"the last of it", "tags show student-s1 --newest-first --limit 10"}},
       .run = show_tag},
      {.path = "tags types",
       .summary = "List which event types carry which tags",
       .options = {db_option},
       .examples = {{"as JSON", "tags types --json"}},
       .run = types},
      {.path = "tags add",
       .summary = "Add the tags that a type declares to events of history",
       .about =
           "Decisions that need these tags are refused until it has finished. Appends continue "
           "meanwhile. If it is interrupted, run it again. Only a tool that is built into its "
           "application knows the types.",
       .options = {db_option, {"--type", "NAME", "the event type"}},
       .examples = {{"a type that got tags", "tags add --type course.subscribed"}},
       .run = add_tags_to_events},
      {.path = "tags forget",
       .summary = "Let a type do without a category of tags",
       .about = "Existing tags stay. Programs that don't declare the category may append again.",
       .options = {db_option,
                   {"--type", "NAME", "the event type"},
                   {"--category", "NAME", "the category of tags"},
                   yes_option},
       .examples = {{"a tag that was given up",
                     "tags forget --type course.subscribed --category term --yes"}},
       .run = forget},
  };
}

}  // namespace stela::tool
