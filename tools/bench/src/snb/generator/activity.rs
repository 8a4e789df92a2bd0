//! The generator of forums, members, posts, comments and likes.
//!
//! Everybody has a wall; some have albums of photographs, some moderate groups. Who has more
//! friends writes more and is answered more. A third of the posts are about events, within days
//! after these, so that times and tags are correlated.

use std::io;

use super::draw;
use super::output::Output;
use super::persons::{BEGIN_MS, END_MS, Person};
use super::world::World;
use crate::snb::operation::Insertion;
use orrery_bsbm::Random;
use orrery_bsbm::distribution::Stream;
use orrery_bsbm::words::WordList;

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;
const EVENTS: usize = 200;
const GROUP_MEMBERS_MAX: u32 = 2_000;
const SHORT_ANSWERS: [&str; 8] = [
    "yes", "no", "ok", "thanks", "LOL", "maybe", "great", "I see",
];

/// What many write about for some days.
struct Event {
    time: i64,
    tag: u64,
}

/// Draws what happens in forums.
pub(super) struct Activity<'a, 'o> {
    seed: u64,
    world: &'a World,
    persons: &'a [Person],
    words: WordList,
    events: Vec<Event>,
    output: &'a mut Output<'o>,
    messages: u64,
    forums: u64,
}

/// A member of a forum, since when.
type Member = (u32, i64);

impl<'a, 'o> Activity<'a, 'o> {
    pub(super) fn new(
        seed: u64,
        world: &'a World,
        persons: &'a [Person],
        output: &'a mut Output<'o>,
    ) -> Self {
        let mut random = Random::for_entity(seed, Stream::SnbForum, u64::MAX);
        let events = (0..EVENTS).map(|_| {
            let country = World::country(&mut random);
            Event {
                time: draw::any_time(&mut random, BEGIN_MS, END_MS),
                tag: World::tag(country, &mut random),
            }
        });
        let events = events.collect();
        Self {
            seed,
            world,
            persons,
            words: WordList::new(),
            events,
            output,
            messages: 0,
            forums: 0,
        }
    }

    /// The forums that each person moderates.
    pub(super) fn write(&mut self) -> io::Result<()> {
        for index in 0..self.persons.len() as u32 {
            let mut random = Random::for_entity(self.seed, Stream::SnbForum, u64::from(index));
            self.wall(index, &mut random)?;
            for album in 0..random.below(9) {
                self.album(index, album, &mut random)?;
            }
            if random.chance(30) {
                self.group(index, &mut random)?;
            }
        }
        Ok(())
    }

    fn forum(
        &mut self,
        moderator: u32,
        title: String,
        created: i64,
        tags: Vec<u64>,
    ) -> io::Result<u64> {
        let number = self.forums;
        self.forums += 1;
        let person = &self.persons[moderator as usize];
        let forum = Insertion::Forum {
            forum: number,
            title,
            creation_date: created,
            moderator: person.number,
            tags,
        };
        self.output.event(created, person.created, &forum)?;
        Ok(number)
    }

    fn join(&mut self, forum: u64, created: i64, members: &[Member]) -> io::Result<()> {
        for &(member, since) in members {
            let person = &self.persons[member as usize];
            let membership = Insertion::Membership {
                forum,
                person: person.number,
                join_date: since,
            };
            let depends_on = created.max(person.created);
            self.output.event(since, depends_on, &membership)?;
        }
        Ok(())
    }

    fn wall(&mut self, index: u32, random: &mut Random) -> io::Result<()> {
        let person = &self.persons[index as usize];
        let created = person.created + MINUTE_MS;
        let members: Vec<Member> = person
            .friends
            .iter()
            .map(|(friend, since)| (*friend, since + MINUTE_MS))
            .filter(|(_, since)| *since < END_MS)
            .collect();
        let title = format!("Wall of {}", person.name);
        let tags = person.interests.iter().take(3).copied().collect();
        let posts = draw::power_law(random, 1.0 + person.friends.len() as f64 / 6.0, 500);
        let forum = self.forum(index, title, created, tags)?;
        self.join(forum, created, &members)?;
        for _ in 0..posts {
            self.post(forum, created, index, created, &members, false, random)?;
        }
        Ok(())
    }

    fn album(&mut self, index: u32, album: u32, random: &mut Random) -> io::Result<()> {
        let person = &self.persons[index as usize];
        let created = draw::soon(random, person.created + MINUTE_MS, END_MS - DAY_MS);
        let members: Vec<Member> = person
            .friends
            .iter()
            .filter(|_| random.chance(60))
            .map(|(friend, since)| (*friend, created.max(*since) + MINUTE_MS))
            .filter(|(_, since)| *since < END_MS)
            .collect();
        let title = format!("Album {album} of {}", person.name);
        let tags = person.interests.first().copied().into_iter().collect();
        let forum = self.forum(index, title, created, tags)?;
        self.join(forum, created, &members)?;
        for _ in 0..5 + random.below(20) {
            self.post(forum, created, index, created, &members, true, random)?;
        }
        Ok(())
    }

    fn group(&mut self, index: u32, random: &mut Random) -> io::Result<()> {
        let person = &self.persons[index as usize];
        let created = draw::soon(random, person.created + MINUTE_MS, END_MS - DAY_MS);
        let tag = World::tag(person.country, random);
        let title = format!(
            "Group for {} in {}",
            self.world.tags[tag as usize], self.world.places[person.city as usize]
        );
        let size = draw::power_law(random, 20.0, GROUP_MEMBERS_MAX);
        let mut members: Vec<Member> = Vec::new();
        for _ in 0..size {
            let friend = random.pick(&person.friends).map(|(friend, _)| *friend);
            let member = match friend {
                Some(friend) if random.chance(50) => friend,
                _ => random.below(self.persons.len() as u32),
            };
            let from = created.max(self.persons[member as usize].created) + MINUTE_MS;
            if member != index && from < END_MS {
                members.push((member, draw::soon(random, from, END_MS)));
            }
        }
        members.sort_unstable();
        members.dedup_by_key(|(member, _)| *member);
        let forum = self.forum(index, title, created, vec![tag])?;
        self.join(forum, created, &members)?;
        for &(member, since) in &members {
            for _ in 0..random.below(4) {
                self.post(forum, created, member, since, &members, false, random)?;
            }
        }
        Ok(())
    }

    /// A time, and what is written about: an event now and then.
    fn occasion(&self, since: i64, author: &Person, random: &mut Random) -> (i64, Vec<u64>) {
        let event = random.pick(&self.events);
        match event {
            Some(event) if event.time > since && random.chance(60) => {
                let until = (event.time + 7 * DAY_MS).min(END_MS);
                (draw::soon(random, event.time, until), vec![event.tag])
            }
            _ => {
                let mut tags: Vec<u64> = (0..random.below(4))
                    .filter_map(|_| random.pick(&author.interests).copied())
                    .collect();
                tags.sort_unstable();
                tags.dedup();
                (draw::soon(random, since, END_MS), tags)
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "what a post is made of")]
    fn post(
        &mut self,
        forum: u64,
        forum_created: i64,
        author_index: u32,
        since: i64,
        members: &[Member],
        is_photograph: bool,
        random: &mut Random,
    ) -> io::Result<()> {
        let author = &self.persons[author_index as usize];
        let (time, tags) = self.occasion(since + MINUTE_MS, author, random);
        if time >= END_MS {
            return Ok(());
        }
        let post = self.messages;
        self.messages += 1;
        let (image_file, content) = match is_photograph {
            true => (format!("photo{post}.jpg"), String::new()),
            false => (String::new(), self.content(&tags, random)),
        };
        let insertion = Insertion::Post {
            post,
            image_file,
            creation_date: time,
            location_ip: author.ip.clone(),
            browser_used: author.browser.to_owned(),
            language: (if is_photograph { "" } else { "en" }).to_owned(),
            length: content.len() as u64,
            content,
            author: author.number,
            forum,
            country: self.country(author, random),
            tags: tags.clone(),
        };
        let depends_on = forum_created.max(since).max(author.created);
        self.output.event(time, depends_on, &insertion)?;
        self.likes(post, false, time, members, random)?;
        if !is_photograph {
            self.comments(post, time, members, &tags, random)?;
        }
        Ok(())
    }

    fn comments(
        &mut self,
        post: u64,
        posted: i64,
        members: &[Member],
        tags: &[u64],
        random: &mut Random,
    ) -> io::Result<()> {
        // The post, and then the comments to it and to each other.
        let mut thread = vec![(post, false, posted)];
        for _ in 0..draw::power_law(random, 0.6 + members.len() as f64 / 20.0, 60) {
            let Some(&(member, since)) = random.pick(members) else {
                break;
            };
            let Some(&(parent, is_comment, parent_time)) = random.pick(&thread) else {
                break;
            };
            let from = parent_time.max(since) + MINUTE_MS;
            let until = (from + 14 * DAY_MS).min(END_MS);
            if from >= until {
                continue;
            }
            let time = draw::soon(random, from, until);
            let author = &self.persons[member as usize];
            let tags = match random.chance(40) {
                true => tags.to_vec(),
                false => Vec::new(),
            };
            let content = match tags.is_empty() {
                true => random
                    .pick(&SHORT_ANSWERS)
                    .copied()
                    .unwrap_or_default()
                    .to_owned(),
                false => self.content(&tags, random),
            };
            let comment = self.messages;
            self.messages += 1;
            let insertion = Insertion::Comment {
                comment,
                creation_date: time,
                location_ip: author.ip.clone(),
                browser_used: author.browser.to_owned(),
                length: content.len() as u64,
                content,
                author: author.number,
                country: self.country(author, random),
                reply_to: (parent, is_comment),
                tags,
            };
            let depends_on = parent_time.max(since).max(author.created);
            self.output.event(time, depends_on, &insertion)?;
            self.likes(comment, true, time, members, random)?;
            thread.push((comment, true, time));
        }
        Ok(())
    }

    fn likes(
        &mut self,
        message: u64,
        is_comment: bool,
        written: i64,
        members: &[Member],
        random: &mut Random,
    ) -> io::Result<()> {
        let count = draw::power_law(random, 0.5, 40).min(members.len() as u32);
        let mut likers: Vec<Member> = (0..count)
            .filter_map(|_| random.pick(members).copied())
            .collect();
        likers.sort_unstable();
        likers.dedup();
        for (member, since) in likers {
            let person = &self.persons[member as usize];
            let from = written.max(since) + MINUTE_MS;
            let until = (from + 30 * DAY_MS).min(END_MS);
            if from >= until {
                continue;
            }
            let time = draw::soon(random, from, until);
            let like = Insertion::Like {
                person: person.number,
                message,
                is_comment,
                creation_date: time,
            };
            let depends_on = written.max(person.created);
            self.output.event(time, depends_on, &like)?;
        }
        Ok(())
    }

    /// Where one writes from: at home but for some.
    fn country(&self, author: &Person, random: &mut Random) -> u64 {
        match random.chance(8) {
            true => World::country(random),
            false => author.country,
        }
    }

    fn content(&self, tags: &[u64], random: &mut Random) -> String {
        let mut text = Vec::new();
        for tag in tags {
            let name = self.world.tags[*tag as usize].replace('_', " ");
            text.extend_from_slice(format!("About {name}, ").as_bytes());
        }
        self.words.write(random, 3, 20, &mut text);
        String::from_utf8_lossy(&text).trim_end().to_owned()
    }
}
