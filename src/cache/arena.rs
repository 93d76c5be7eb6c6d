//! Things in numbered places: a place stays the same while the thing is there, and is reused afterwards.

/// Things in numbered places.
#[derive(Clone, Debug)]
pub(super) struct Arena<T> {
    things: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Arena { things: Vec::new(), free: Vec::new() }
    }
}

impl<T: Default> Arena<T> {
    /// Puts a thing into a free place.
    pub fn add(&mut self, thing: T) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.things[at as usize] = thing;
                at
            }
            None => {
                self.things.push(thing);
                (self.things.len() - 1) as u32
            }
        }
    }

    /// How many places there are, free ones included.
    pub fn len(&self) -> usize {
        self.things.len()
    }

    /// Takes a thing out of its place.
    pub fn remove(&mut self, at: u32) -> T {
        self.free.push(at);
        std::mem::take(&mut self.things[at as usize])
    }
}

impl<T> std::ops::Index<u32> for Arena<T> {
    type Output = T;

    fn index(&self, at: u32) -> &T {
        &self.things[at as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Arena<T> {
    fn index_mut(&mut self, at: u32) -> &mut T {
        &mut self.things[at as usize]
    }
}
